// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/scheme"
)

// DryRun is the flag --dry-run, with kubectl's values.
type DryRun struct{ Value string }

var dryRuns = []string{"none", "client", "server"}

// AddTo adds the flag to a command.
func (d *DryRun) AddTo(cmd *cobra.Command) {
	d.Value = dryRuns[0]
	cmd.Flags().Var(d, "dry-run", "Create nothing: client sends no request, server validates the request. Defaults to \"none\", or \"client\" if set without a value.")
	cmd.Flag("dry-run").NoOptDefVal = "client"
	Must(cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions(dryRuns, cobra.ShellCompDirectiveNoFileComp)))
}

// String implements pflag.Value.
func (d *DryRun) String() string { return d.Value }

// Type implements pflag.Value.
func (d *DryRun) Type() string { return "string" }

// Set implements pflag.Value.
func (d *DryRun) Set(value string) error {
	if !slices.Contains(dryRuns, value) {
		return fmt.Errorf("must be client, server or none, not %q", value)
	}
	d.Value = value
	return nil
}

// IsClient reports whether no request is sent.
func (d *DryRun) IsClient() bool { return d.Value == "client" }

// APIValue returns the DryRun field of requests.
func (d *DryRun) APIValue() []string {
	if d.Value == "server" {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// Outcome returns the result of one operation as kubectl prints it, such as "placement/web created (dry run)".
func (d *DryRun) Outcome(kind, name, operation string) string {
	return Outcome(kind, name, operation) + d.suffix()
}

// Created returns the result of the creation of an object.
func Created(o *unstructured.Unstructured) string {
	return Outcome(o.GetKind(), o.GetName(), "created")
}

// Outcome returns the result of one operation on an object.
func Outcome(kind, name, operation string) string {
	return strings.ToLower(kind) + "/" + name + " " + operation
}

// suffix returns the text that kubectl appends to the result of a dry run.
func (d *DryRun) suffix() string {
	switch d.Value {
	case "client":
		return " (dry run)"
	case "server":
		return " (server dry run)"
	}
	return ""
}

// Format is the flag --output of a command whose result is not an object.
type Format struct {
	Value   string
	allowed []string
}

// NewFormat allows these formats; the first is the default.
func NewFormat(allowed ...string) *Format { return &Format{Value: allowed[0], allowed: allowed} }

// AddTo adds the flag to a command.
func (f *Format) AddTo(cmd *cobra.Command) {
	cmd.Flags().VarP(f, "output", "o", "Format of the result: "+strings.Join(f.allowed, " or ")+".")
	Must(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(f.allowed, cobra.ShellCompDirectiveNoFileComp)))
}

// String implements pflag.Value.
func (f *Format) String() string { return f.Value }

// Type implements pflag.Value.
func (f *Format) Type() string { return "string" }

// Set implements pflag.Value.
func (f *Format) Set(value string) error {
	if !slices.Contains(f.allowed, value) {
		return fmt.Errorf("must be %s", strings.Join(f.allowed, " or "))
	}
	f.Value = value
	return nil
}

// Print prints a result as JSON or text, depending on the flag.
func (f *Format) Print(out io.Writer, result any, text string, args ...any) error {
	if f.Value == "json" {
		return f.JSON(out, result)
	}
	_, err := fmt.Fprintf(out, text, args...)
	return err
}

// Text prints a line, unless the format is JSON.
func (f *Format) Text(out io.Writer, line string) error {
	if f.Value == "json" {
		return nil
	}
	_, err := fmt.Fprintln(out, line)
	return err
}

// JSON prints the result if the format is JSON.
func (f *Format) JSON(out io.Writer, result any) error {
	if f.Value != "json" {
		return nil
	}
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(result)
}

// Document prints a result as JSON, or as YAML, depending on the flag.
func (f *Format) Document(out io.Writer, result any) error {
	if f.Value != "yaml" {
		return f.JSON(out, result)
	}
	data, err := yaml.Marshal(result)
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}

// Table is the flag --output of a command whose result is a list of objects.
type Table struct{ flags *genericclioptions.PrintFlags }

// NewTable returns the flag with the default "table".
func NewTable() *Table {
	return &Table{flags: genericclioptions.NewPrintFlags("").WithTypeSetter(scheme.Scheme).WithDefaultOutput("table")}
}

// AddTo adds the flag to a command whose result is a list.
func (t *Table) AddTo(cmd *cobra.Command) {
	t.flags.AddFlags(cmd)
	allowed := append([]string{"table", "wide"}, t.flags.AllowedFormats()...)
	cmd.Flag("output").Usage = "Output format. One of: (" + strings.Join(allowed, ", ") + ")."
	Must(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(allowed, cobra.ShellCompDirectiveNoFileComp)))
}

// AddObjectTo adds the flag to a command whose result is an object. It prints a line if no format is set.
func (t *Table) AddObjectTo(cmd *cobra.Command) {
	t.flags.AddFlags(cmd)
	*t.flags.OutputFormat = ""
	cmd.Flag("output").DefValue = ""
	cmd.Flag("output").Usage = "Output format. One of: (" + strings.Join(t.flags.AllowedFormats(), ", ") + "). Defaults to a line of text."
	Must(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(t.flags.AllowedFormats(), cobra.ShellCompDirectiveNoFileComp)))
}

// Format returns the value of the flag.
func (t *Table) Format() string { return *t.flags.OutputFormat }

// IsTable reports whether rows are printed rather than objects.
func (t *Table) IsTable() bool { return slices.Contains([]string{"", "table", "wide"}, t.Format()) }

// Validate rejects an unknown format before any request is sent.
func (t *Table) Validate() error {
	if t.IsTable() {
		return nil
	}
	_, err := t.flags.ToPrinter()
	return err
}

// PrintObjects prints an object or a list in a format other than a table.
func (t *Table) PrintObjects(out io.Writer, list runtime.Object) error {
	printer, err := t.flags.ToPrinter()
	if err != nil {
		return err
	}
	if t.Format() != "name" || !meta.IsListType(list) {
		return printer.PrintObj(list, out)
	}
	return meta.EachListItem(list, func(object runtime.Object) error { return printer.PrintObj(object, out) })
}

// PrintRows prints a table.
func (t *Table) PrintRows(out io.Writer, rows *metav1.Table) error {
	return printers.NewTablePrinter(printers.PrintOptions{Wide: t.Format() == "wide"}).PrintObj(rows, out)
}

// Columns returns the columns of a table. Those with a plus sign are shown with -o wide.
func Columns(names ...string) (defined []metav1.TableColumnDefinition) {
	for _, name := range names {
		name, wide := strings.CutPrefix(name, "+")
		column := metav1.TableColumnDefinition{Name: name, Type: "string"}
		if wide {
			column.Priority = 1
		}
		defined = append(defined, column)
	}
	return defined
}
