// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/clusterhub/clusterhub/pkg/command"
)

var (
	docsFile    = regexp.MustCompile("(?ms)^`([^`\n]+)`:\n\n```[a-z]+\n(.*?)^```$")
	docsConsole = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")
)

// The pages about edge nodes have commands that need no hub. With the files that a page shows, they print what it says.
func TestDocs_EdgeCommandsPrintWhatThePagesSay(t *testing.T) {
	for _, page := range []string{"edge-deploycheck.md", "edge-from-open-horizon.md"} {
		t.Run(page, func(t *testing.T) {
			data, err := os.ReadFile("../../docs/" + page)
			if err != nil {
				t.Fatal(err)
			}
			folder := t.TempDir()
			for _, file := range docsFile.FindAllStringSubmatch(string(data), -1) {
				write(t, filepath.Join(folder, file[1]), file[2])
			}
			t.Chdir(folder)
			commands, code := 0, 0
			for _, block := range docsConsole.FindAllStringSubmatch(string(data), -1) {
				var got strings.Builder
				text := strings.ReplaceAll(block[1], "\\\n", "")
				for line := range strings.Lines(text) {
					typed, is := strings.CutPrefix(strings.TrimSpace(line), "$ ")
					switch {
					case !is:
						continue
					case !strings.HasPrefix(typed, "kubectl hub") && !strings.HasPrefix(typed, "tar ") && typed != "echo $?":
						t.Fatalf("%q is neither kubectl hub, nor tar, nor echo $?", typed)
					}
					commands++
					got.WriteString(line)
					switch typed, _, _ := strings.Cut(typed, "  #"); {
					case typed == "echo $?":
						fmt.Fprintln(&got, code)
					case strings.HasPrefix(typed, "tar "):
						// As tar has it; what is in it does not matter.
						write(t, filepath.Join(folder, strings.Fields(typed)[2]), string(packed(t, "web", "")))
					default:
						var said string
						said, code = typedCommand(t, typed)
						got.WriteString(said)
					}
				}
				if trimLines(got.String()) != trimLines(text) {
					t.Errorf("the page has\n%s\nand it is\n%s", text, got.String())
				}
			}
			if commands < 5 {
				t.Errorf("only %d commands are tried", commands)
			}
		})
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// typedCommand is what a command prints on a terminal, and its code.
func typedCommand(t *testing.T, typed string) (string, int) {
	t.Helper()
	words := csv.NewReader(strings.NewReader(strings.ReplaceAll(strings.TrimPrefix(strings.TrimSpace(typed), "kubectl hub "), "'", `"`)))
	words.Comma = ' '
	args, err := words.Read()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	g := &global{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out}, flags: genericclioptions.NewConfigFlags(true), version: "v1"}
	cmd := newCommand(g)
	cmd.SetArgs(append(args, "--kubeconfig", os.DevNull))
	err = cmd.ExecuteContext(t.Context())
	var end *command.Exit
	switch {
	case errors.As(err, &end):
		return out.String(), end.Code
	case err != nil:
		return out.String() + "Error: " + command.ErrorLine(err) + "\n", 1
	}
	return out.String(), 0
}

func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
