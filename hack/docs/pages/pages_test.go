// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestParse_CommandsAndOutput(t *testing.T) {
	blocks, err := Parse("a.md", strings.ReplaceAll(`# A
<!-- run:
$ make up
-->
~shop/a.yaml~:

~~~yaml
a: 1
~~~

- in a list:

  ~~~console
  $ kubectl get \
      pods
  NAME
  $ kubectl apply -f - <<EOF
  $ not a command
  EOF
  made
  ~~~

<!-- not run: there is no cloud -->

~~~sh
helm install

helm list
~~~

<!-- not run: it needs AWS -->
<!-- run:
$ token=a
-->
~~~console
$ aws
~~~

<!-- in another terminal -->
<!-- typed with:
eyJh… = "$token"
c1-x7k2p = $(kubectl get csr)
-->
~~~console
$ join eyJh…
c1-x7k2p eyJh…
~~~

<!-- run by: hack/charts/e2e TestDocs_Helm -->
<!-- run:
$ helm version
-->
<!-- run by: hack/charts/e2e TestDocs_Helm -->
~~~sh
helm uninstall
~~~

~~~sh
helm template
~~~
`, "~", "`"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range blocks {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s file=%s exempt=%s by=%s %v %v", b.Where(), b.Language, b.File, b.NotRun, b.RunBy, b.Elsewhere, b.Swaps)))
		for _, c := range b.Commands {
			got = append(got, c.Where()+" "+c.Text+" => "+c.Output)
		}
	}
	want := []string{
		"a.md:2 hidden file= exempt= by= false []", "a.md:3 make up => ",
		"a.md:7 yaml file=shop/a.yaml exempt= by= false []",
		"a.md:13 console file= exempt= by= false []", "a.md:14 kubectl get \\\n    pods => NAME\n", "a.md:17 kubectl apply -f - <<EOF\n$ not a command\nEOF => made\n",
		"a.md:25 sh file= exempt=there is no cloud by= false []", "a.md:26 helm install => ", "a.md:28 helm list => ",
		"a.md:32 hidden file= exempt= by= false []", "a.md:33 token=a => ",
		"a.md:35 console file= exempt=it needs AWS by= false []", "a.md:36 aws => ",
		`a.md:44 console file= exempt= by= true [{eyJh… "$token"} {c1-x7k2p $(kubectl get csr)}]`, "a.md:45 join eyJh… => c1-x7k2p eyJh…\n",
		"a.md:50 hidden file= exempt= by=hack/charts/e2e TestDocs_Helm false []", "a.md:51 helm version => ",
		"a.md:54 sh file= exempt= by=hack/charts/e2e TestDocs_Helm false []", "a.md:55 helm uninstall => ",
		"a.md:58 sh file= exempt= by= false []", "a.md:59 helm template => ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestParse_RejectsInvalidBlocks(t *testing.T) {
	for name, text := range map[string]string{
		"no end":                 "```console\n$ a\n",
		"no end of a comment":    "<!-- run:\n$ a\n",
		"no reason":              "<!-- not run: -->\n\n```console\n$ a\n```\n",
		"nothing to exempt":      "<!-- not run: a cloud -->\n\ntext\n",
		"nothing, at the end":    "<!-- not run: a cloud -->\n",
		"a comment of two words": "<!-- not run, a cloud -->\n```console\n$ a\n```\n",
		"by a test, without one": "<!-- run by: hack/charts/e2e -->\n```console\n$ a\n```\n",
		"by a test, and nothing": "<!-- run by: hack/charts/e2e TestDocs_Helm -->\n\ntext\n",
		"a command in one line":  "<!-- run: make up -->\n",
		"nothing in a terminal":  "<!-- in another terminal -->\n\ntext\n",
		"a terminal of a name":   "<!-- in another terminal: two -->\n```console\n$ a\n```\n",
		"nothing typed with":     "<!-- typed with:\n-->\n```console\n$ a\n```\n",
		"typed with no word":     "<!-- typed with:\na\n-->\n```console\n$ a\n```\n",
		"typed with no end":      "<!-- typed with:\na = b\n",
		"typed with anything":    "<!-- typed with:\n… = b\n-->\n```console\n$ …\n```\n",
		"exits with success":     "<!-- exits with 0: a -->\n```console\n$ a\n```\n",
		"exits without command":  "<!-- exits with 2: -->\n```console\n$ a\n```\n",
		"exits with no number":   "<!-- exits with a failure: a -->\n```console\n$ a\n```\n",
		"typed in a comment":     "<!-- typed with: a = b -->\n```console\n$ a\n```\n",
	} {
		if blocks, err := Parse("a.md", text); err == nil || !strings.HasPrefix(err.Error(), "a.md:1: ") {
			t.Errorf("%s: %v, %v", name, blocks, err)
		}
	}
}

func TestParse_RejectsMisplacedComments(t *testing.T) {
	for name, text := range map[string]string{
		"typed, and not run":             "<!-- not run: a cloud -->\n<!-- in another terminal -->\n```console\n$ a\n```\n",
		"swapped, and not run":           "<!-- not run: a cloud -->\n<!-- typed with:\na = b\n-->\n```console\n$ a\n```\n",
		"exits, and not run":             "<!-- not run: a cloud -->\n<!-- exits with 2: a -->\n```console\n$ a\n```\n",
		"exits, and the block lacks it":  "<!-- exits with 2: a -->\n```console\n$ a b\n```\n",
		"exits, and no commands":         "<!-- exits with 2: a -->\n```yaml\na: 1\n```\n",
		"two commands in a terminal":     "<!-- in another terminal -->\n```console\n$ a\nA\n$ b\n```\n",
		"no output in a terminal":        "<!-- in another terminal -->\n```console\n$ a\n```\n",
		"swaps what the block lacks":     "<!-- typed with:\nb = c\n-->\n```console\n$ a\n```\n",
		"a file in a terminal":           "<!-- in another terminal -->\n```yaml\na: 1\n```\n",
		"hidden commands, and no others": "<!-- in another terminal -->\n<!-- run:\n$ a\n-->\n",
	} {
		if blocks, err := Parse("a.md", text); err == nil || !strings.HasPrefix(err.Error(), "a.md:") {
			t.Errorf("%s: %v, %v", name, blocks, err)
		}
	}
}

func TestParse_ExitCodes(t *testing.T) {
	blocks, err := Parse("a.md", "<!-- exits with 2: a b -->\n<!-- exits with 3: c … -->\n<!-- run:\n$ a b\n-->\n```console\n$ a b\n$ a\n$ c \\\n  d\n$ c\n```\n")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range blocks {
		for _, c := range b.Commands {
			got = append(got, fmt.Sprintf("%s %d", c.Where(), c.Exit))
		}
	}
	if want := []string{"a.md:4 0", "a.md:7 2", "a.md:8 0", "a.md:9 3", "a.md:11 0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSwapped_ReplacesInCommandAndOutput(t *testing.T) {
	c := Command{Text: "join eyJh… --to hub.example", Output: "joined hub.example\neyJh… and eyJ…\n"}
	got := c.Swapped([]string{"eyJh…", "a.b", "hub.example", "127.0.0.1:1"})
	if want := (Command{Text: "join a.b --to 127.0.0.1:1", Output: "joined 127.0.0.1:1\na.b and eyJ…\n"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestDiffers(t *testing.T) {
	for name, c := range map[string]struct {
		want, got string
		differ    string
	}{
		"the same":                       {want: "a b\n", got: "a b\n"},
		"in other lines":                 {want: "a\nb c\n", got: "a b\nc"},
		"another word":                   {want: "a b c", got: "a x c", differ: `want "b c", got "x c"`},
		"less":                           {want: "a b", got: "a", differ: `want "b", got nothing more`},
		"more":                           {want: "a", got: "a b", differ: `want nothing more, got "b"`},
		"anything":                       {want: "a … d", got: "a b c d"},
		"anything, and then not that":    {want: "a … e", got: "a b c d", differ: `want "e", got`},
		"anything twice":                 {want: "a … d … e", got: "a d b d c e"},
		"anything, at the end":           {want: "a …", got: "a b c"},
		"the beginning":                  {want: "a b…", got: "a bc d e"},
		"the rest of a word":             {want: "eyJh…", got: "eyJhbGci"},
		"the rest of another word":       {want: "eyJh… a", got: "eyK a", differ: `want "eyJh… a", got "eyK a"`},
		"ages":                           {want: "34m 2m23s (11m)", got: "2s 1h (5s)"},
		"no age":                         {want: "34m", got: "<unknown>", differ: `want "<duration>"`},
		"times":                          {want: "2026-11-24T03:10:28Z 05:49:43", got: "2027-01-01T00:00:00Z 23:00:00"},
		"a generated name":               {want: "pod/web-7c6cd6cc58-bpd4z", got: "pod/web-abcdefghij-zzzzz"},
		"a longer hash":                  {want: "web-995c76698", got: "web-56b6c466bf"},
		"a generated name, without any":  {want: "web-u22jr4ip", got: "web-zxvbnmas"},
		"a generated name of another":    {want: "web-u22jr4ip", got: "till-zxvbnmas", differ: `want "web-u22jr4ip"`},
		"a name that is not generated":   {want: "tokyo-1", got: "tokyo-2", differ: `want "tokyo-1"`},
		"a port":                         {want: "https://127.0.0.1:17964", got: "https://127.0.0.1:1"},
		"what is said while it waits":    {want: "a\nWaiting for cluster c1 ... (4s)\nb", got: "a\nb"},
		"a hub on this machine":          {want: "a\nb", got: "a\nWarning: https://127.0.0.1:1 is this machine: others need another address\nb"},
		"another warning":                {want: "a\nb", got: "a\nWarning: c1 is there: choose\nb", differ: `want "b", got "Warning: c1 is"`},
		"waited for, and the page lacks": {want: "a\nb", got: "a\nWaiting for cluster c1 ... (450ms)\nb"},
	} {
		if got := Differs(c.want, c.got); (got == "") != (c.differ == "") || !strings.HasPrefix(got, c.differ) {
			t.Errorf("%s: %q, want %q", name, got, c.differ)
		}
	}
}

func TestSimple(t *testing.T) {
	for text, want := range map[string][]string{
		`kubectl get csm -l 'a=b c' -o "x y"`:                       {"kubectl|get|csm|-l|a=b c|-o|x y"},
		"kubectl get \\\n  pods # all":                              {"kubectl|get|pods"},
		"cat > a.yaml <<EOF\nkind: A\nEOF":                          {"cat"},
		"A=b kubectl get secret | base64 -d > f && echo done; make": {"kubectl|get|secret", "base64|-d", "echo|done", "make"},
		`kubectl x "$(kubectl get | y)" $(command -v z) &`:          {"kubectl|x|$(kubectl get | y)|$(command -v z)"},
		"kubectl hub join --cluster-name <cluster_name> --wait":     {"kubectl|hub|join|--cluster-name|<cluster_name>|--wait"},
		"jq -r .a <<<'{}' 2>&1":                                     {"jq|-r|.a|2"},
		"f=(--a b \\\n  -c $(d)) # e\nkubectl x \"${f[@]}\" g":      {"kubectl|x|${f[@]}|g"},
	} {
		got, err := Simple(text)
		var lines []string
		for _, words := range got {
			lines = append(lines, strings.Join(words, "|"))
		}
		if err != nil || !slices.Equal(lines, want) {
			t.Errorf("%s: %q, %v, want %q", text, lines, err, want)
		}
	}
	for _, text := range []string{"echo 'a", `echo "a`, "echo $(a", "a=(b"} {
		if got, err := Simple(text); err == nil {
			t.Errorf("%s: %q", text, got)
		}
	}
}
