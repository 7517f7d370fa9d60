// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/hack/docs/pages"
	"github.com/clusterhub/clusterhub/pkg/cli"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/scheme"
)

// blocksOf reads all pages.
func blocksOf(t *testing.T) []pages.Block {
	t.Helper()
	all, err := pages.All(root)
	if err != nil {
		t.Error(err)
	}
	return all
}

// looksTyped is a line of a block that would be a command, if the block were a console's.
var looksTyped = regexp.MustCompile(`(?m)^(?:\$ |(?:kubectl|helm|make|git|go run) )`)

// TestDocs_CommandsAreRunOrExempt: blocks of the console are run by test/e2e/docs, but for those that a comment exempts, which says why.
// So each block has to be one of these, and the commands of those that are exempt have to be there with the flags that they are given.
func TestDocs_CommandsAreRunOrExempt(t *testing.T) {
	run, others, notRun := 0, 0, 0
	for _, b := range blocksOf(t) {
		for _, problem := range problems(b) {
			t.Error(problem)
		}
		switch {
		case b.RunBy != "":
			others += len(b.Commands)
		case b.NotRun == "":
			run += len(b.Commands)
		default:
			notRun += len(b.Commands)
		}
	}
	t.Logf("%d commands are run, %d by other tests, and %d are not", run, others, notRun)
	if run < 150 {
		t.Errorf("%d commands are run only", run)
	}
}

// problems returns what is wrong with a block, without running it.
func problems(b pages.Block) (all []string) {
	say := func(where, format string, args ...any) { all = append(all, where+": "+fmt.Sprintf(format, args...)) }
	switch b.Language {
	case "console", "sh", pages.Hidden:
		if len(b.Commands) == 0 {
			say(b.Where(), "the block has no commands: they begin with $, or it is no console")
		}
	case "", "json", "markdown", "mermaid", "text", "yaml":
		if b.NotRun != "" || b.RunBy != "" {
			say(b.Where(), "there is nothing to run in this block")
		}
		if looksTyped.MatchString(b.Text) {
			say(b.Where(), "commands are in blocks of the languages console or sh, so that they are run")
		}
	default:
		say(b.Where(), "the language %s is unknown", b.Language)
	}
	if b.Language == pages.Hidden {
		return all // they are run, and may be loops
	}
	for _, c := range b.Commands {
		simple, err := pages.Simple(c.Text)
		if err != nil {
			say(c.Where(), "%v", err)
		}
		for _, words := range simple {
			if err := known(words, true); err != nil {
				say(c.Where(), "%s: %v", strings.Join(words, " "), err)
			}
		}
	}
	return all
}

// TestDocs_CommandsInTextExist looks at commands between backquotes, also those of runbooks and findings. They may lack arguments.
func TestDocs_CommandsInTextExist(t *testing.T) {
	looked := 0
	for file, text := range pagesOf(t) {
		for n, line := range strings.Split(text, "\n") {
			for _, found := range span.FindAllString(line, -1) {
				typed := strings.ReplaceAll(strings.Trim(found, "`"), `\|`, "|")
				if !regexp.MustCompile(`^(?:kubectl|helm|make|hack/test\.sh) `).MatchString(typed) || strings.Contains(typed, "…-") {
					continue
				}
				looked++
				simple, err := pages.Simple(typed)
				for _, words := range simple {
					err = errors.Join(err, known(words, false))
				}
				if err != nil {
					t.Errorf("%s:%d: %s: %v", file, n+1, typed, err)
				}
			}
		}
	}
	if looked < 100 {
		t.Errorf("the documentation has %d commands in its text only", looked)
	}
}

// verbs are those of programs that are not ours.
var verbs = map[string][]string{
	"kubectl": {"annotate", "api-resources", "apply", "auth", "certificate", "config", "create", "delete", "describe", "diff", "edit", "events", "exec", "explain", "get",
		"krew", "kustomize", "label", "logs", "patch", "replace", "rollout", "scale", "top", "version", "wait"},
	"helm":                    {"diff", "get", "install", "list", "push", "rollback", "template", "test", "uninstall", "upgrade"},
	"go":                      {"get", "install", "run", "test"},
	"git":                     {"clone", "tag"},
	"_output/bin/localhub":    {"clean", "down", "status", "up"},
	"_output/bin/kubectl-hub": nil,
	"cluster-provider":        nil,
	"hub-controller-manager":  nil,
	".ci/run":                 nil,
	"hack/test.sh":            nil,
	"aws":                     {"eks", "iam"},
	"base64":                  nil,
	"cat":                     nil,
	"cd":                      nil,
	"command":                 nil,
	"cosign":                  {"sign", "signing-config", "verify"},
	"cut":                     nil,
	"echo":                    nil,
	"eval":                    nil,
	"export":                  nil,
	"grep":                    nil,
	"jq":                      nil,
	"kill":                    nil,
	"ln":                      nil,
	"mkdir":                   nil,
	"rm":                      nil,
	"sed":                     nil,
	"ssh":                     nil,
	"tar":                     nil,
	"umask":                   nil,
}

// inRepository are words that are paths in it.
var inRepository = regexp.MustCompile(`^(?:\./)?(?:artifacts|examples|hack|test|\.ci)/[\w./-]+$`)

// known says what is wrong with a command, as far as it can be seen without running it.
func known(words []string, whole bool) error {
	for _, word := range words {
		if path := strings.TrimSuffix(word, "/..."); inRepository.MatchString(path) {
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				return fmt.Errorf("%s is not in the repository", word)
			}
		}
	}
	switch words[0] {
	case "make":
		return knownTargets(words[1:])
	case "kubectl":
		if at := slices.Index(words, "hub"); at == 1 {
			return knownPlugin(words[2:], whole)
		}
	}
	want, there := verbs[words[0]]
	if !there {
		return fmt.Errorf("%s is unknown here: add it to hack/docs/commands_test.go", words[0])
	}
	if verb := firstArgument(words[1:]); len(want) > 0 && verb != "" && !isPlaceholder(verb) && !slices.Contains(want, verb) {
		return fmt.Errorf("%s %s is unknown here: add it to hack/docs/commands_test.go", words[0], verb)
	}
	if folder := sourceOf(words); folder != "" {
		return knownFlags(folder, words)
	}
	return nil
}

// isPlaceholder reports whether a word of a text stands for others, such as COMMAND or ….
func isPlaceholder(word string) bool { return word == strings.ToUpper(word) }

// firstArgument is the first word that is neither a flag nor the value of one.
func firstArgument(words []string) string {
	for i := 0; i < len(words); i++ {
		switch {
		case !strings.HasPrefix(words[i], "-"):
			return words[i]
		case !strings.Contains(words[i], "=") && words[i] != "-A" && words[i] != "-C":
			i++
		}
	}
	return ""
}

func knownTargets(words []string) error {
	data, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		return err
	}
	for _, word := range words {
		name, _, isVariable := strings.Cut(word, "=")
		switch {
		case isVariable && !regexp.MustCompile(`(?m)\$\(`+name+`\)|\$\(if \$\(`+name+`\)|^`+name+` *\??:?=`).Match(data):
			return fmt.Errorf("the Makefile does not use %s", name)
		case !isVariable && !strings.Contains(string(data), "\n"+word+":") && word != "…":
			return fmt.Errorf("the Makefile has no target %s", word)
		}
	}
	return nil
}

// knownPlugin parses a command of kubectl hub as the plugin does. One in a text may lack arguments.
func knownPlugin(words []string, whole bool) error {
	discard := genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard}
	tree := cli.NewCommand(discard, "v1")
	// … is the value of a flag, or more flags, and so is what a shell puts in the place of a variable.
	open := func(w string) bool { return w == "…" || w == "..." || w == "--help" || strings.HasPrefix(w, "$") }
	if given := slices.DeleteFunc(slices.Clone(words), open); len(given) < len(words) {
		words, whole = given, false
	}
	if !whole { // a flag that lacks its value
		for i, word := range words {
			if strings.HasPrefix(word, "--") && !strings.Contains(word, "=") && (i == len(words)-1 || strings.HasPrefix(words[i+1], "-")) {
				cmd, _, _ := tree.Find(words)
				flag := cmd.Flag(strings.TrimPrefix(word, "--"))
				if flag == nil {
					return fmt.Errorf("unknown flag: %s", word)
				}
				words = slices.Clone(words)
				words[i] += "=" + someValue(flag)
			}
		}
	}
	if !whole && (len(words) == 0 || isPlaceholder(words[0])) {
		return nil
	}
	cmd, rest, err := tree.Find(words)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil && !errors.Is(err, pflag.ErrHelp) {
		return err
	}
	if !whole {
		if cmd.HasSubCommands() && len(cmd.Flags().Args()) > 0 && !isPlaceholder(cmd.Flags().Arg(0)) {
			return fmt.Errorf("%s has no command %s", cmd.CommandPath(), cmd.Flags().Arg(0))
		}
		return nil
	}
	return validArguments(cmd)
}

func validArguments(cmd *cobra.Command) error {
	if cmd.HasSubCommands() || !cmd.Runnable() {
		return fmt.Errorf("%s is not a command by itself: %q", cmd.CommandPath(), cmd.Flags().Args())
	}
	return errors.Join(cmd.ValidateArgs(cmd.Flags().Args()), cmd.ValidateRequiredFlags())
}

func someValue(flag *pflag.Flag) string {
	switch flag.Value.Type() {
	case "bool":
		return "true"
	case "duration":
		return "1s"
	case "string", "stringArray", "stringSlice", "strings":
		return "x"
	}
	return "1"
}

// sourceOf is the folder of the program that a command runs, where that is in the repository.
func sourceOf(words []string) string {
	if name, is := strings.CutPrefix(words[0], "_output/bin/"); is {
		words = []string{name}
	}
	if folder := "cmd/" + words[0]; words[0] == "localhub" || words[0] == "cluster-provider" || words[0] == "hub-controller-manager" {
		return folder
	}
	if words[0] == "go" && len(words) > 2 && words[1] == "run" && strings.HasPrefix(words[2], "./") {
		return words[2]
	}
	return ""
}

// knownFlags looks for flags in the source of a program, or in the packages of ours that have flags.
func knownFlags(folder string, words []string) error {
	source := ""
	for _, pattern := range []string{folder + "/*.go", "pkg/command/*.go", "pkg/controllers/manager/*.go", "pkg/controllers/*/*/*.go", "pkg/clusterprovider/*.go", "pkg/clusterprovider/*/*.go"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return err
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			source += string(data)
		}
	}
	for _, word := range words {
		name, is := strings.CutPrefix(word, "--")
		name, _, _ = strings.Cut(name, "=")
		if is && !strings.Contains(source, `"`+name+`"`) && name != "kubeconfig" {
			return fmt.Errorf("%s has no flag --%s", folder, name)
		}
	}
	return nil
}

// TestDocs_ObjectsDecodeStrictly decodes what pages show as YAML and JSON, and strictly what is of our kinds.
func TestDocs_ObjectsDecodeStrictly(t *testing.T) {
	strict := 0
	for _, b := range blocksOf(t) {
		switch text := b.Text; {
		case b.Language == "json" && strings.HasPrefix(text, "{"):
			if !json.Valid([]byte(text)) {
				t.Errorf("%s: no JSON", b.Where())
			}
		case b.Language == "yaml":
			strict += decode(t, b.Where(), text)
		}
		for _, c := range b.Commands {
			if _, given, is := strings.Cut(c.Text, "-f - <<EOF\n"); is {
				strict += decode(t, c.Where(), strings.TrimSuffix(given, "EOF"))
			}
		}
	}
	if strict < 15 {
		t.Errorf("%d objects are of our kinds only", strict)
	}
}

// decode returns how many objects of a text were of our kinds.
func decode(t *testing.T, where, text string) (ours int) {
	t.Helper()
	docs := apiyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return ours
		}
		var of struct{ APIVersion, Kind string }
		var content any
		if err == nil {
			err = yaml.Unmarshal(doc, &content)
		}
		if err != nil {
			t.Errorf("%s: %v", where, err)
			return ours
		}
		if _, is := content.(map[string]any); !is || yaml.Unmarshal(doc, &of) != nil {
			continue // a part of a file
		}
		obj, err := scheme.Scheme.New(schema.FromAPIVersionAndKind(of.APIVersion, of.Kind))
		if err != nil {
			continue // of others, or a part of a file
		}
		ours++
		if err := yaml.UnmarshalStrict(doc, obj); err != nil && !strings.Contains(string(doc), "…") {
			t.Errorf("%s: %s: %v", where, of.Kind, err)
		}
	}
}
