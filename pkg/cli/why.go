// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/pkg/answers"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/diagnosis"
)

// somethingBroken is the exit code if the answer has a finding.
const somethingBroken = 2

const whyExit = "\n\nThe exit code is 0 if no problem was found, 2 if one was found, and 1 after an error, which includes that a problem " +
	"may be where you may not look."

func newWhyCommand(g *global) *cobra.Command {
	return group("why", "Explain the state of an object: the first step that is broken, who must act, and what to do", newWhyClusterCommand(g),
		newWhyMemberCommand(g), newWhyAccessCommand(g), newWhyAccessRequestCommand(g), newWhyPlacementCommand(g), newWhyWorkCommand(g))
}

// whyOptions are the options of all commands below why.
type whyOptions struct {
	*global
	out *format
}

func newWhy(g *global) *whyOptions {
	return &whyOptions{global: g, out: newFormat("text", "json", "yaml")}
}

// answer queries a hub. An API that is not served is an answer, too.
func (o *whyOptions) answer(ask func(*answers.HubView) (*diagnosis.Answer, error)) error {
	config, err := o.restConfig()
	if err != nil {
		return err
	}
	h, err := newHub(config)
	if err != nil {
		return err
	}
	a, err := ask(h.answers())
	if notServed := (*answers.NotServedError)(nil); errors.As(err, &notServed) {
		return unreachable(config.Host, h.notAHub(notServed.Err), "check --context and --kubeconfig")
	}
	return o.finish(a, err)
}

// finish prints an answer, and returns its exit code.
func (o *whyOptions) finish(a *diagnosis.Answer, err error) error {
	if err != nil {
		return err
	}
	if a.Finding != nil {
		a.Finding.Fix = diagnosis.At(a.Finding.Fix, o.where()...)
	}
	if err := o.print(a); err != nil {
		return err
	}
	switch {
	case a.Finding != nil:
		return &command.Exit{Code: somethingBroken}
	case a.IsBlind():
		return errors.New("you may not see all objects that must be checked: have a user with more rights run the command")
	}
	return nil
}

func (o *whyOptions) print(a *diagnosis.Answer) error {
	switch o.out.value {
	case "json":
		return o.out.json(o.Out, a)
	case "yaml":
		text, err := yaml.Marshal(a)
		if err != nil {
			return err
		}
		_, err = o.Out.Write(text)
		return err
	}
	l := &lines{out: o.Out}
	l.printf("%s.", a.Verdict)
	l.printf("")
	marks := map[diagnosis.StepState]string{diagnosis.Passed: "passed", diagnosis.Broken: "BROKEN", diagnosis.Unseen: "NOT SEEN", diagnosis.NotReached: "-"}
	wide := 0
	for _, s := range a.Steps {
		wide = max(wide, len(s.Name))
	}
	for _, s := range a.Steps {
		l.printf("%s", strings.TrimRight(fmt.Sprintf("  %-*s  %-8s  %s", wide, s.Name, marks[s.State], s.Text), " "))
	}
	if f := a.Finding; f != nil {
		printFinding(l, f)
	}
	if len(a.Unseen) > 0 {
		l.printf("")
		l.printf("Not seen:")
		for _, why := range a.Unseen {
			l.printf("  %s", why)
		}
	}
	return l.err
}

func printFinding(l *lines, f *diagnosis.Finding) {
	l.printf("")
	l.printf("Cause:        %s", f.Cause)
	if f.Turn != "" {
		l.printf("Waiting for:  %s", f.Turn)
	}
	if f.Since != nil {
		l.printf("Since:        %s (%s)", f.Since.UTC().Format(time.RFC3339), age(*f.Since))
	}
	for i, fix := range f.Fix {
		head := "              "
		if i == 0 {
			head = "Next:         "
		}
		l.printf("%s%s", head, fix)
	}
	l.printf("More:         %s", f.Link())
}
