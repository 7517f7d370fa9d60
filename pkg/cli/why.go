// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/diagnosis"
)

// somethingBroken is the exit code of an answer that has found what is broken.
const somethingBroken = 2

const whyExit = "\n\nIt ends with 0 if all is well, with 2 if something that is broken was found, and with 1 after an error, also if something that is broken " +
	"could be where you may not look."

func (g *global) newWhyCommand() *cobra.Command {
	return group("why", "Say why something is as it is: the first thing that is broken, whose turn it is, and what to do", g.newWhyClusterCommand(),
		g.newWhyMemberCommand(), g.newWhyAccessCommand(), g.newWhyAccessRequestCommand(), g.newWhyPlacementCommand(), g.newWhyWorkCommand())
}

// whyOptions are what the commands below why share.
type whyOptions struct {
	*global
	out *format
}

func (g *global) newWhy() *whyOptions {
	return &whyOptions{global: g, out: newFormat("text", "json", "yaml")}
}

// finish prints an answer, and says by the exit code what it is.
func (o *whyOptions) finish(a *diagnosis.Answer) error {
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
		return errors.New("you may not see all that had to be looked at: have a user with more rights run the command")
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
	marks := map[diagnosis.State]string{diagnosis.Passed: "passed", diagnosis.Broken: "BROKEN", diagnosis.Unseen: "NOT SEEN", diagnosis.NotReached: "-"}
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
	l.printf("Cause:  %s", f.Cause)
	if f.Turn != "" {
		l.printf("Turn:   %s", f.Turn)
	}
	if f.Since != nil {
		l.printf("Since:  %s (%s)", f.Since.UTC().Format(time.RFC3339), age(*f.Since))
	}
	for i, fix := range f.Fix {
		head := "        "
		if i == 0 {
			head = "Next:   "
		}
		l.printf("%s%s", head, fix)
	}
	l.printf("More:   %s", f.Link())
}

// look turns what a server answers into what a check takes. An error that says neither that there is nothing, nor that the user may not
// see it, is one of the command.
func look[T any](value T, err error, what string) (diagnosis.Read[T], error) {
	switch {
	case err == nil:
		return diagnosis.Found(value), nil
	case apierrors.IsForbidden(err):
		return diagnosis.Hidden[T]("you may not " + what), nil
	case apierrors.IsNotFound(err):
		return diagnosis.Missing[T](), nil
	}
	return diagnosis.Read[T]{}, err
}

// setsOf are the sets that a cluster is in, as far as the user sees them.
func (h *hub) setsOf(ctx context.Context, cluster string) (diagnosis.Read[[]string], error) {
	members, err := pages(func(options metav1.ListOptions) (sets []string, next string, err error) {
		options.FieldSelector = "spec.cluster=" + cluster
		page, err := h.clusters.ViewV1alpha1().ClusterSetMembers().List(ctx, options)
		if err != nil {
			return nil, "", err
		}
		for i := range page.Items {
			sets = append(sets, page.Items[i].Spec.ClusterSet)
		}
		return sets, page.Continue, nil
	})
	slices.Sort(members)
	return look(members, err, "list clustersetmembers, which say in which sets the cluster is")
}
