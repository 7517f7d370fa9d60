// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package constraint

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// This is a second implementation of the language, slow and of a different kind: it does not parse. It replaces each comparison by T or F, and each
// expression in parentheses by its result, from the inside to the outside; what cannot be replaced is an error.

const (
	wordClass  = `[0-9A-Za-z_\-/!?+~'.\p{L}\p{M}\p{N}\p{Sc}\x{FF01}-\x{FF9F}]`
	spaceClass = `[ \t\r\n]`
	fullClass  = `[0-9]+\.[0-9]+\.[0-9]+`
	boundClass = `"(?:` + wordClass + `|[ \t,])+"|[(\[]` + fullClass + `,(?:` + fullClass + `|INFINITY)[)\]]`
	valueClass = `(` + boundClass + `|[0-9]*\.[0-9]*\.[0-9]*|-?[0-9]+(?:\.[0-9]+)?|` + wordClass + `+)`
	andOr      = spaceClass + `+(?:AND|&&|OR|\|\|)` + spaceClass + `+`
)

var (
	comparisonPattern = regexp.MustCompile(
		`^(?:(` + wordClass + `+)` + spaceClass + `*(=<=|=>=|=<|=>|<=|>=|<|>|==|=|!=)` + spaceClass + `*` + valueClass +
			`|(` + wordClass + `+)` + spaceClass + `+(in)` + spaceClass + `*` + valueClass +
			`|(` + wordClass + `+)(in)` + spaceClass + `+` + valueClass +
			`|(` + wordClass + `+)(in)(` + boundClass + `))`)
	operandBefore    = regexp.MustCompile(`(\)|\x01[TF])` + spaceClass + `*$`)
	joinPattern      = regexp.MustCompile(`^` + andOr)
	innermostPattern = regexp.MustCompile(`\(([^()]*)\)`)
	flatPattern      = regexp.MustCompile(`^` + spaceClass + `*[TF](` + andOr + `[TF])*(` + andOr + `)?` + spaceClass + `*$`)
	danglingPattern  = regexp.MustCompile(andOr + `$`)
	orPattern        = regexp.MustCompile(spaceClass + `+(?:OR|\|\|)` + spaceClass + `+`)
	numberLike       = regexp.MustCompile(`^(-?[0-9]|[0-9]*\.[0-9]*\.)`)
	fullRange        = regexp.MustCompile(`^([(\[])(` + fullClass + `),(` + fullClass + `|INFINITY)([)\]])$`)
	anyVersion       = regexp.MustCompile(`^([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?$`)
)

// secondReading reports whether an expression is valid, and whether these properties satisfy it. The dollar sign is no letter of the language, as
// other currency signs are.
func secondReading(expression string, properties []Property) (valid, satisfied bool) {
	if len(expression) > MaxExpressionLength || strings.ContainsAny(expression, "\x00\x01$") {
		return false, false
	}
	count, skeleton := 0, ""
	for rest := expression; rest != ""; {
		// AND may be a name, too, but not after what it joins.
		taken := ""
		if operandBefore.MatchString(skeleton) {
			taken = joinPattern.FindString(rest)
		}
		if groups := comparisonPattern.FindStringSubmatch(rest); taken == "" && groups != nil {
			count++
			skeleton += secondTruth(groups, properties)
			rest = rest[len(groups[0]):]
			continue
		}
		if taken == "" {
			_, size := utf8.DecodeRuneInString(rest)
			taken = rest[:size]
		}
		skeleton, rest = skeleton+taken, rest[len(taken):]
	}
	// A T or an F of the original text is not a result.
	if strings.ContainsAny(strings.NewReplacer("\x01T", "", "\x01F", "", "AND", "", "OR", "").Replace(skeleton), "TF\x00") || count > MaxTerms {
		return false, false
	}
	skeleton = strings.ReplaceAll(skeleton, "\x01", "")
	for {
		inner := innermostPattern.FindStringSubmatchIndex(skeleton)
		if inner == nil {
			break
		}
		result, ok := flat(skeleton[inner[2]:inner[3]])
		if !ok {
			return false, false
		}
		skeleton = skeleton[:inner[0]] + result + skeleton[inner[1]:]
	}
	result, ok := flat(skeleton)
	return ok, result == "T"
}

// secondTruth returns the replacement of a comparison: whether it is satisfied, or an error.
func secondTruth(groups []string, properties []Property) string {
	for groups = groups[1:]; groups[0] == ""; groups = groups[3:] {
	}
	name, operator, literal := groups[0], groups[1], groups[2]
	if !validComparison(name, operator, literal) {
		return "\x00"
	}
	i := slices.IndexFunc(properties, func(p Property) bool { return p.Name == name })
	if i >= 0 && secondComparison(properties[i], operator, literal) {
		return "\x01T"
	}
	return "\x01F"
}

// flat evaluates a skeleton without parentheses.
func flat(skeleton string) (string, bool) {
	if strings.Trim(skeleton, " \t\r\n") == "" {
		return "T", true
	}
	if !flatPattern.MatchString(skeleton) {
		return "", false
	}
	skeleton = danglingPattern.ReplaceAllStringFunc(skeleton, func(operator string) string { return operator + "T" })
	for _, alternative := range orPattern.Split(skeleton, -1) {
		if !strings.Contains(alternative, "F") {
			return "T", true
		}
	}
	return "F", true
}

func validComparison(name, operator, literal string) bool {
	quoted := strings.HasPrefix(literal, `"`)
	if name == "in" || numberLike.MatchString(name) || literal == "in" {
		return false
	}
	switch operator {
	case "=", "==", "!=":
		return !fullRange.MatchString(literal) && (!quoted || !strings.Contains(literal, ","))
	case "in":
		return quoted || fullRange.MatchString(literal) || regexp.MustCompile(`^[0-9]*\.[0-9]*\.[0-9]*$`).MatchString(literal)
	}
	_, err := strconv.ParseFloat(literal, 64)
	return err == nil
}

// secondComparison implements the table of the documentation, line by line.
func secondComparison(property Property, operator, literal string) bool {
	switch value := property.Value.(type) {
	case bool:
		wanted, err := strconv.ParseBool(literal)
		return err == nil && ((operator == "=" || operator == "==") && value == wanted || operator == "!=" && value != wanted)
	case float64:
		wanted, err := strconv.ParseFloat(literal, 64)
		if err != nil {
			return false
		}
		results := map[string]bool{
			"<": value < wanted, ">": value > wanted, "<=": value <= wanted, ">=": value >= wanted, "!=": value != wanted,
		}
		if result, there := results[operator]; there {
			return result
		}
		return value == wanted
	}
	have, wanted := stripSpaces(stripQuotes(property.Value.(string))), stripSpaces(stripQuotes(literal))
	list := property.Type == List
	switch operator {
	case "=", "==":
		return have == wanted || listed(wanted, have)
	case "!=":
		return list && !listed(wanted, have) || !list && have != wanted
	case "in":
		if property.Type == Version || anyVersion.MatchString(strings.ReplaceAll(have, "INFINITY", "0")) && fullRange.MatchString(wanted) {
			return between(have, wanted)
		}
		if list {
			return slices.ContainsFunc(strings.Split(have, ","), func(one string) bool { return listed(stripQuotes(stripSpaces(one)), wanted) })
		}
		return listed(have, wanted)
	}
	return false
}

func stripQuotes(text string) string {
	if len(text) > 1 && strings.HasPrefix(text, `"`) && strings.HasSuffix(text, `"`) {
		return text[1 : len(text)-1]
	}
	return text
}

func stripSpaces(text string) string {
	for strings.HasPrefix(text, " ") {
		text = text[1:]
	}
	for strings.HasSuffix(text, " ") {
		text = text[:len(text)-1]
	}
	return text
}

func listed(one, list string) bool {
	for _, other := range strings.Split(list, ",") {
		if stripQuotes(stripSpaces(one)) == stripQuotes(stripSpaces(other)) {
			return true
		}
	}
	return false
}

// between reports whether a version is in a range, or is not before a single version.
func between(have, wanted string) bool {
	if anyVersion.MatchString(wanted) {
		wanted = "[" + wanted + ",INFINITY)"
		if have == infinity {
			return false
		}
		return compareSecond(have, strings.Split(wanted[1:], ",")[0]) >= 0
	}
	groups := fullRange.FindStringSubmatch(wanted)
	if groups == nil {
		return false
	}
	low, high := compareSecond(have, groups[2]), compareSecond(have, groups[3])
	return (low > 0 || low == 0 && groups[1] == "[") && (high < 0 || high == 0 && groups[4] == "]")
}

// compareSecond compares versions by Semantic Versioning 2.0.
func compareSecond(a, b string) int {
	if a == b || a == infinity || b == infinity {
		return boolCompare(a == infinity, b == infinity)
	}
	one, other := anyVersion.FindStringSubmatch(a), anyVersion.FindStringSubmatch(b)
	for field := 1; field <= 3; field++ {
		if result := bigInt(one[field]).Cmp(bigInt(other[field])); result != 0 {
			return result
		}
	}
	if one[4] == "" || other[4] == "" {
		return boolCompare(one[4] == "", other[4] == "")
	}
	left, right := strings.Split(one[4], "."), strings.Split(other[4], ".")
	for i := 0; ; i++ {
		if i == len(left) || i == len(right) {
			return len(left) - len(right)
		}
		x, xErr := strconv.ParseUint(left[i], 10, 64)
		y, yErr := strconv.ParseUint(right[i], 10, 64)
		switch {
		case xErr == nil && yErr == nil && x != y:
			return boolCompare(x > y, y > x)
		case (xErr == nil) != (yErr == nil):
			return boolCompare(yErr == nil, xErr == nil)
		case xErr != nil && left[i] != right[i]:
			return strings.Compare(left[i], right[i])
		}
	}
}

func bigInt(digits string) *big.Int {
	number := new(big.Int)
	if digits != "" {
		if _, ok := number.SetString(digits, 10); !ok {
			panic(fmt.Sprintf("%q is no number", digits))
		}
	}
	return number
}
