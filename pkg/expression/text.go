// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"
)

// MaxText is the maximum length of a text that an expression may create, in bytes. The cost of a call is known only after the call, and one call of
// the functions here can create gigabytes from a few kilobytes. So they check the length before; for the others, which at most double their input,
// costs.CallCost checks it afterwards.
const MaxText = 1 << 20

// boundedText returns the library of strings, with limits for the functions of which one call multiplies its input.
func boundedText() []cel.EnvOption {
	text, list := cel.StringType, cel.ListType(cel.StringType)
	return []cel.EnvOption{
		ext.Strings(),
		cel.Function("replace",
			cel.MemberOverload("string_replace_string_string", []*cel.Type{text, text, text}, text, cel.FunctionBinding(replace)),
			cel.MemberOverload("string_replace_string_string_int", []*cel.Type{text, text, text, cel.IntType}, text, cel.FunctionBinding(replace))),
		cel.Function("join",
			cel.MemberOverload("list_join", []*cel.Type{list}, text,
				cel.UnaryBinding(func(l ref.Val) ref.Val { return join(l, types.String("")) })),
			cel.MemberOverload("list_join_string", []*cel.Type{list, text}, text, cel.BinaryBinding(join))),
		cel.Function("format", cel.MemberOverload("string_format",
			[]*cel.Type{text, cel.ListType(cel.DynType)}, text, cel.FunctionBinding(format))),
	}
}

func tooLong() ref.Val { return types.NewErr("the text would be longer than %d bytes", MaxText) }

func replace(args ...ref.Val) ref.Val {
	var parts [3]string
	for i := range parts {
		part, ok := args[i].(types.String)
		if !ok {
			return types.MaybeNoSuchOverloadErr(args[i])
		}
		parts[i] = string(part)
	}
	most := -1
	if len(args) > 3 {
		n, ok := args[3].(types.Int)
		if !ok {
			return types.MaybeNoSuchOverloadErr(args[3])
		}
		most = int(n)
	}
	s, old, to := parts[0], parts[1], parts[2]
	count := strings.Count(s, old)
	if most >= 0 {
		count = min(count, most)
	}
	if len(s)+count*max(len(to)-len(old), 0) > MaxText {
		return tooLong()
	}
	return types.String(strings.Replace(s, old, to, most))
}

func join(list, separator ref.Val) ref.Val {
	l, isList := list.(traits.Lister)
	between, isText := separator.(types.String)
	if !isList || !isText {
		return types.MaybeNoSuchOverloadErr(list)
	}
	var text strings.Builder
	for i := types.Int(0); i < l.Size().(types.Int); i++ {
		item, ok := l.Get(i).(types.String)
		if !ok {
			return types.NewErr("join takes a list of strings")
		}
		if text.Len()+len(between)+len(item) > MaxText {
			return tooLong()
		}
		if i > 0 {
			text.WriteString(string(between))
		}
		text.WriteString(string(item))
	}
	return types.String(text.String())
}

// formatter returns the library's function, which can only be called by an expression.
var formatter = sync.OnceValues(func() (cel.Program, error) {
	env, err := cel.NewEnv(ext.Strings(), cel.Variable("text", cel.StringType), cel.Variable("args", cel.ListType(cel.DynType)))
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile("text.format(args)")
	if err := issues.Err(); err != nil {
		return nil, err
	}
	return env.Program(ast)
})

func format(args ...ref.Val) ref.Val {
	text, isText := args[0].(types.String)
	list, isList := args[1].(traits.Lister)
	if !isText || !isList {
		return types.MaybeNoSuchOverloadErr(args[0])
	}
	// No verb prints more than all arguments together. A number takes up to 1 + 309 + 1 + 100 characters.
	verbs := strings.Count(string(text), "%")
	remaining := MaxText - len(text)
	if verbs > 0 {
		remaining /= verbs
	}
	textOf(list, &remaining)
	if remaining < 0 {
		return tooLong()
	}
	program, err := formatter()
	if err != nil {
		return types.WrapErr(err)
	}
	result, _, err := program.Eval(map[string]any{"text": text, "args": list})
	if err != nil {
		return types.WrapErr(err)
	}
	return result
}

// textOf subtracts the maximum length of a formatted value from room.
func textOf(value ref.Val, remaining *int) {
	const number = 512
	switch v := value.(type) {
	case types.String:
		// In hexadecimal.
		*remaining -= 2 * len(v)
	case types.Bytes:
		*remaining -= 8 * len(v)
	case traits.Lister:
		for i := types.Int(0); *remaining >= 0 && i < v.Size().(types.Int); i++ {
			*remaining -= 2
			textOf(v.Get(i), remaining)
		}
	case traits.Mapper:
		for it := v.Iterator(); *remaining >= 0 && it.HasNext() == types.True; {
			k := it.Next()
			*remaining -= 4
			textOf(k, remaining)
			textOf(v.Get(k), remaining)
		}
	default:
		*remaining -= number
	}
}
