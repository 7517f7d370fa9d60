// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"encoding/json"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "",
		"Größe\tя 中\r\n🙂\u00a0":    "Größe\tя 中\r\n🙂\u00a0",
		"\u200f\u061cשלום\u200d":   "\u200f\u061cשלום\u200d", // marks belong to text
		"a\x1b[2Jb":                "a\ufffd[2Jb",
		"a\rb\r":                   "a\ufffdb\ufffd",
		"a\u009b2Jb\u0085\x7f":     "a\ufffd2Jb\ufffd\ufffd",
		"a\u2028b\u2029":           "a\ufffdb\ufffd",
		"a\u202egpj.exe\u2066\x00": "a\ufffdgpj.exe\ufffd\ufffd",
		"a\xffb\xed\xa0\x80":       "a\ufffdb\ufffd",
		"\uffff":                   "\ufffd",
	} {
		got := Plain(text)
		if got != want || IsPlain(text) != (text == want) || !IsPlain(got) {
			t.Errorf("%q: got %q (%t), want %q", text, got, IsPlain(text), want)
		}
		// What kubectl does with -o yaml.
		data, err := json.Marshal(map[string]string{"k": got})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := yaml.JSONToYAML(data); err != nil {
			t.Errorf("%q: %v", got, err)
		}
	}
}

func FuzzPlain(f *testing.F) {
	f.Add("a\rb\u009b\xff\r\n\r\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		got := Plain(text)
		if IsPlain(text) && got != text {
			t.Errorf("%q is plain, and becomes %q", text, got)
		}
		if Plain(got) != got {
			t.Errorf("%q becomes %q, and that %q", text, got, Plain(got))
		}
	})
}
