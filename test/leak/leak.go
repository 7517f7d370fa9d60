// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leak finds secrets in logs, in whatever form they are in there: as they are, in hex dumps, hexadecimal digits or
// lists of bytes, in base64, quoted as in Go and JSON, in URLs, and in one of these inside of another.
package leak

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"regexp"
	"slices"
	"strconv"
)

// depth is the maximum number of nested encodings that are searched.
const depth = 4

// part is the number of consecutive bytes of a secret that count as a leak. A shorter secret must be present as a whole.
const part = 12

// Secrets are values by what they are called.
type Secrets map[string][]byte

// Find returns the names of the secrets that are in the log, as a whole or in part.
func (s Secrets) Find(log []byte) (names []string) {
	needles := needles{parts: map[string]string{}}
	for name, value := range s {
		needles.add(name, value)
	}
	found := map[string]bool{}
	needles.search(log, depth, found)
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// needles are pieces of secrets, without the space in them, which line breaks change.
type needles struct {
	// parts has the name of the secret for each piece.
	parts map[string]string
	// lengths are those of the pieces.
	lengths []int
	// first says with which two bytes pieces begin.
	first [1 << 16]bool
}

func (n *needles) add(name string, value []byte) {
	value = withoutSpace(value)
	size := len(value)
	if size >= 2*part {
		size = part
	}
	for ; size > 1 && len(value) >= size; value = value[size:] {
		n.parts[string(value[:size])] = name
		n.first[int(value[0])<<8|int(value[1])] = true
		if !slices.Contains(n.lengths, size) {
			n.lengths = append(n.lengths, size)
		}
	}
}

func (n *needles) search(text []byte, depth int, found map[string]bool) {
	for _, view := range differing(text, withoutSpace(text)) {
		for i := 0; i+1 < len(view); i++ {
			if !n.first[int(view[i])<<8|int(view[i+1])] {
				continue
			}
			for _, length := range n.lengths {
				if i+length <= len(view) {
					if name, ok := n.parts[string(view[i:i+length])]; ok {
						found[name] = true
					}
				}
			}
		}
	}
	if depth == 0 {
		return
	}
	for _, decode := range []func([]byte) [][]byte{hexDumps, hexDigits, byteLists, base64s, unquoted, unescaped} {
		for _, decoded := range decode(text) {
			n.search(decoded, depth-1, found)
		}
	}
}

// differing returns a text and what is left of it, or the text alone if nothing was taken out: each is looked through in all forms.
func differing(text, rest []byte) [][]byte {
	if len(rest) == len(text) {
		return [][]byte{text}
	}
	return [][]byte{text, rest}
}

func withoutSpace(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, b := range text {
		if b != ' ' && b != '\t' && b != '\r' && b != '\n' {
			out = append(out, b)
		}
	}
	return out
}

var (
	dumpLine  = regexp.MustCompile(`(?:[0-9a-f]{8}|[0-9a-f]{7}0) {1,2}((?:[0-9a-f]{2} {1,2}){1,16}) *\|`)
	digits    = regexp.MustCompile(`(?:[0-9a-fA-F]{2}:?){16,}`)
	byteList  = regexp.MustCompile(`[\[{](?:(?:0x[0-9a-f]{1,2}|[0-9]{1,3})[, ]{0,2}){8,}[\]}]?`)
	byteValue = regexp.MustCompile(`0x[0-9a-f]{1,2}|[0-9]{1,3}`)
	// A long text in base64 may be cut into lines, also by escapes of line breaks.
	base64Text = regexp.MustCompile(`[A-Za-z0-9+/_-]{16,}(?:(?:\\n|\\r|\s)+[A-Za-z0-9+/_-]{16,})*`)
	lineBreak  = regexp.MustCompile(`(?:\\n|\\r|\s)+`)
	escape     = regexp.MustCompile(`%[0-9a-fA-F]{2}`)
)

// chars are the bytes that a form is written in.
type chars [256]bool

func charsOf(all string) (c chars) {
	for i := range len(all) {
		c[all[i]] = true
	}
	return c
}

// The regular expressions above match no less than so many of these in a row. To look for them is much faster, and most texts have none.
var (
	ofDumps   = charsOf("0123456789abcdef")
	ofDigits  = charsOf("0123456789abcdefABCDEF:")
	ofLists   = charsOf("[{0123456789abcdefx, ")
	ofBase64s = charsOf("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-")
)

// inRow reports whether a text has at least n of the bytes in a row.
func (c *chars) inRow(text []byte, n int) bool {
	row := 0
	for _, b := range text {
		if !c[b] {
			row = 0
			continue
		}
		row++
		if row == n {
			return true
		}
	}
	return false
}

// hexDumps returns what is in the output of hex.Dump and hexdump -C: the lines of a dump follow each other, with or without
// other text around them.
func hexDumps(text []byte) [][]byte {
	if !ofDumps.inRow(text, 8) {
		return nil
	}
	var all []byte
	for _, line := range dumpLine.FindAllSubmatch(text, -1) {
		bytes, err := hex.DecodeString(string(withoutSpace(line[1])))
		if err == nil {
			all = append(all, bytes...)
		}
	}
	return some(all)
}

func hexDigits(text []byte) (decoded [][]byte) {
	if !ofDigits.inRow(text, 32) {
		return nil
	}
	for _, run := range digits.FindAll(text, -1) {
		run = bytes.ReplaceAll(run, []byte(":"), nil)
		// What comes before may look like digits, too.
		for offset := range 2 {
			even := run[offset : len(run)-(len(run)-offset)%2]
			if bytes, err := hex.DecodeString(string(even)); err == nil {
				decoded = append(decoded, bytes)
			}
		}
	}
	return decoded
}

// byteLists returns what fmt has printed with %v and %#v.
func byteLists(text []byte) (decoded [][]byte) {
	if !ofLists.inRow(text, 9) {
		return nil
	}
	for _, list := range byteList.FindAll(text, -1) {
		var bytes []byte
		for _, value := range byteValue.FindAll(list, -1) {
			if b, err := strconv.ParseUint(string(value), 0, 8); err == nil {
				bytes = append(bytes, byte(b))
			}
		}
		decoded = append(decoded, bytes)
	}
	return decoded
}

func base64s(text []byte) (decoded [][]byte) {
	if !ofBase64s.inRow(text, 16) {
		return nil
	}
	for _, run := range base64Text.FindAll(text, -1) {
		for _, run := range differing(run, lineBreak.ReplaceAll(run, nil)) {
			run = bytes.ReplaceAll(bytes.ReplaceAll(run, []byte("-"), []byte("+")), []byte("_"), []byte("/"))
			// What comes before may look like base64, too, and the end may be missing.
			for offset := range 4 {
				whole := run[offset:]
				for len(whole)%4 == 1 {
					whole = whole[:len(whole)-1]
				}
				into := make([]byte, base64.RawStdEncoding.DecodedLen(len(whole)))
				size, _ := base64.RawStdEncoding.Decode(into, whole)
				decoded = append(decoded, into[:size])
			}
		}
	}
	return decoded
}

// unquoted undoes the quoting of strings, of which each line has some. What is not quoted stays.
func unquoted(text []byte) [][]byte {
	if !bytes.Contains(text, []byte(`\`)) {
		return nil
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			out = append(out, text[i])
			continue
		}
		rest := string(text[i:min(len(text), i+10)])
		switch value, multibyte, tail, err := strconv.UnquoteChar(rest, 0); {
		case err == nil && multibyte:
			out = append(out, string(value)...)
			i += len(rest) - len(tail) - 1
		case err == nil:
			out = append(out, byte(value))
			i += len(rest) - len(tail) - 1
		default: // \" and \/
			out = append(out, text[i+1])
			i++
		}
	}
	return some(out)
}

func unescaped(text []byte) [][]byte {
	if !bytes.Contains(text, []byte("%")) {
		return nil
	}
	return some(escape.ReplaceAllFunc(text, func(e []byte) []byte {
		plain, _ := url.PathUnescape(string(e)) // it is one
		return []byte(plain)
	}))
}

func some(decoded []byte) [][]byte {
	if len(decoded) == 0 {
		return nil
	}
	return [][]byte{decoded}
}
