// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// dryRun is the flag --dry-run, with kubectl's values.
type dryRun struct{ value string }

var dryRuns = []string{"none", "client", "server"}

func (d *dryRun) addTo(cmd *cobra.Command) {
	d.value = dryRuns[0]
	cmd.Flags().Var(d, "dry-run", "Create nothing: client sends no request, server validates the request. Defaults to \"none\", or \"client\" if set without a value.")
	cmd.Flag("dry-run").NoOptDefVal = "client"
	must(cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions(dryRuns, cobra.ShellCompDirectiveNoFileComp)))
}

// String implements pflag.Value.
func (d *dryRun) String() string { return d.value }

// Type implements pflag.Value.
func (d *dryRun) Type() string { return "string" }

// Set implements pflag.Value.
func (d *dryRun) Set(value string) error {
	if !slices.Contains(dryRuns, value) {
		return fmt.Errorf("must be client, server or none, not %q", value)
	}
	d.value = value
	return nil
}

func (d *dryRun) isClient() bool { return d.value == "client" }

// options returns the DryRun field of requests.
func (d *dryRun) options() []string {
	if d.value == "server" {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// outcome returns the result of one operation as kubectl prints it, such as "placement/web created (dry run)".
func (d *dryRun) outcome(kind, name, operation string) string {
	return outcome(kind, name, operation) + d.suffix()
}

// created returns the result of the creation of an object.
func created(o *unstructured.Unstructured) string {
	return outcome(o.GetKind(), o.GetName(), "created")
}

// outcome returns the result of one operation on an object.
func outcome(kind, name, operation string) string {
	return strings.ToLower(kind) + "/" + name + " " + operation
}

// suffix returns the text that kubectl appends to the result of a dry run.
func (d *dryRun) suffix() string {
	switch d.value {
	case "client":
		return " (dry run)"
	case "server":
		return " (server dry run)"
	}
	return ""
}
