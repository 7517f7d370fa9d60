// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package why has the command why, which explains the state of one object.
package why

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/inspect/answers"
	"github.com/clusterhub/clusterhub/pkg/inspect/diagnosis"
)

// somethingBroken is the exit code if the answer has a finding.
const somethingBroken = 2

const whyExit = "\n\nThe exit code is 0 if no problem was found, 2 if one was found, and 1 after an error, which includes that a problem " +
	"may be where you may not look."

// NewCommand returns the command why.
func NewCommand(opts *kit.Options) *cobra.Command {
	return kit.NewGroup("why", "Explain the state of an object: the first step that is broken, who must act, and what to do", newWhyClusterCommand(opts),
		newWhyMemberCommand(opts), newWhyAccessCommand(opts), newWhyAccessRequestCommand(opts), newWhyPlacementCommand(opts), newWhyWorkCommand(opts))
}

// whyOptions are the options of all commands below why.
type whyOptions struct {
	*kit.Options
	out *kit.Format
}

func newWhy(opts *kit.Options) *whyOptions {
	return &whyOptions{Options: opts, out: kit.NewFormat("text", "json", "yaml")}
}

// answer queries a hub. An API that is not served is an answer, too.
func (o *whyOptions) answer(ask func(*answers.HubView) (*diagnosis.Answer, error)) error {
	config, err := o.RESTConfig()
	if err != nil {
		return err
	}
	h, err := kit.NewHub(config)
	if err != nil {
		return err
	}
	a, err := ask(h.Answers())
	if notServed := (*answers.NotServedError)(nil); errors.As(err, &notServed) {
		return kit.ExplainUnreachable(config.Host, h.ExplainError(notServed.Err), "check --context and --kubeconfig")
	}
	return o.finish(a, err)
}

// finish prints an answer, and returns its exit code.
func (o *whyOptions) finish(a *diagnosis.Answer, err error) error {
	if err != nil {
		return err
	}
	if a.Finding != nil {
		a.Finding.Fix = diagnosis.At(a.Finding.Fix, o.ContextFlags()...)
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
	switch o.out.Value {
	case "json":
		return o.out.JSON(o.Out, a)
	case "yaml":
		text, err := yaml.Marshal(a)
		if err != nil {
			return err
		}
		_, err = o.Out.Write(text)
		return err
	}
	l := &kit.Lines{Out: o.Out}
	l.Printf("%s.", a.Verdict)
	l.Printf("")
	marks := map[diagnosis.StepState]string{diagnosis.Passed: "passed", diagnosis.Broken: "BROKEN", diagnosis.Unseen: "NOT SEEN", diagnosis.NotReached: "-"}
	wide := 0
	for _, s := range a.Steps {
		wide = max(wide, len(s.Name))
	}
	for _, s := range a.Steps {
		l.Printf("%s", strings.TrimRight(fmt.Sprintf("  %-*s  %-8s  %s", wide, s.Name, marks[s.State], s.Text), " "))
	}
	if f := a.Finding; f != nil {
		printFinding(l, f)
	}
	if len(a.Unseen) > 0 {
		l.Printf("")
		l.Printf("Not seen:")
		for _, why := range a.Unseen {
			l.Printf("  %s", why)
		}
	}
	return l.Err
}

func printFinding(l *kit.Lines, f *diagnosis.Finding) {
	l.Printf("")
	l.Printf("Cause:        %s", f.Cause)
	if f.Turn != "" {
		l.Printf("Waiting for:  %s", f.Turn)
	}
	if f.Since != nil {
		l.Printf("Since:        %s (%s)", f.Since.UTC().Format(time.RFC3339), kit.Age(*f.Since))
	}
	for i, fix := range f.Fix {
		head := "              "
		if i == 0 {
			head = "Next:         "
		}
		l.Printf("%s%s", head, fix)
	}
	l.Printf("More:         %s", f.Link())
}
