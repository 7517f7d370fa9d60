// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/scheme"
)

// format is the flag --output of a command whose result is not an object.
type format struct {
	value   string
	allowed []string
}

// newFormat allows these formats; the first is the default.
func newFormat(allowed ...string) *format { return &format{value: allowed[0], allowed: allowed} }

func (f *format) addTo(cmd *cobra.Command) {
	cmd.Flags().VarP(f, "output", "o", "Format of the result: "+strings.Join(f.allowed, " or ")+".")
	must(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(f.allowed, cobra.ShellCompDirectiveNoFileComp)))
}

// String implements pflag.Value.
func (f *format) String() string { return f.value }

// Type implements pflag.Value.
func (f *format) Type() string { return "string" }

// Set implements pflag.Value.
func (f *format) Set(value string) error {
	if !slices.Contains(f.allowed, value) {
		return fmt.Errorf("must be %s", strings.Join(f.allowed, " or "))
	}
	f.value = value
	return nil
}

// print prints a result as JSON or text, depending on the flag.
func (f *format) print(out io.Writer, result any, text string, args ...any) error {
	if f.value == "json" {
		return f.json(out, result)
	}
	_, err := fmt.Fprintf(out, text, args...)
	return err
}

// text prints a line, unless the format is JSON.
func (f *format) text(out io.Writer, line string) error {
	if f.value == "json" {
		return nil
	}
	_, err := fmt.Fprintln(out, line)
	return err
}

// json prints the result if the format is JSON.
func (f *format) json(out io.Writer, result any) error {
	if f.value != "json" {
		return nil
	}
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(result)
}

// document prints a result as JSON, or as YAML, depending on the flag.
func (f *format) document(out io.Writer, result any) error {
	if f.value != "yaml" {
		return f.json(out, result)
	}
	data, err := yaml.Marshal(result)
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}

// table is the flag --output of a command whose result is a list of objects.
type table struct{ flags *genericclioptions.PrintFlags }

func newTable() *table {
	return &table{flags: genericclioptions.NewPrintFlags("").WithTypeSetter(scheme.Scheme).WithDefaultOutput("table")}
}

func (t *table) addTo(cmd *cobra.Command) {
	t.flags.AddFlags(cmd)
	allowed := append([]string{"table", "wide"}, t.flags.AllowedFormats()...)
	cmd.Flag("output").Usage = "Output format. One of: (" + strings.Join(allowed, ", ") + ")."
	must(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(allowed, cobra.ShellCompDirectiveNoFileComp)))
}

// addObjectTo adds the flag to a command whose result is an object. It prints a line if no format is set.
func (t *table) addObjectTo(cmd *cobra.Command) {
	t.flags.AddFlags(cmd)
	*t.flags.OutputFormat = ""
	cmd.Flag("output").DefValue = ""
	cmd.Flag("output").Usage = "Output format. One of: (" + strings.Join(t.flags.AllowedFormats(), ", ") + "). Defaults to a line of text."
	must(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(t.flags.AllowedFormats(), cobra.ShellCompDirectiveNoFileComp)))
}

func (t *table) format() string { return *t.flags.OutputFormat }

// isTable reports whether rows are printed rather than objects.
func (t *table) isTable() bool { return slices.Contains([]string{"", "table", "wide"}, t.format()) }

// validate rejects an unknown format before any request is sent.
func (t *table) validate() error {
	if t.isTable() {
		return nil
	}
	_, err := t.flags.ToPrinter()
	return err
}

func (t *table) printObjects(out io.Writer, list runtime.Object) error {
	printer, err := t.flags.ToPrinter()
	if err != nil {
		return err
	}
	if t.format() != "name" || !meta.IsListType(list) {
		return printer.PrintObj(list, out)
	}
	return meta.EachListItem(list, func(object runtime.Object) error { return printer.PrintObj(object, out) })
}

func (t *table) printRows(out io.Writer, rows *metav1.Table) error {
	return printers.NewTablePrinter(printers.PrintOptions{Wide: t.format() == "wide"}).PrintObj(rows, out)
}

// columns returns the columns of a table. Those with a plus sign are shown with -o wide.
func columns(names ...string) (defined []metav1.TableColumnDefinition) {
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

func orNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}

// example indents an example as help shows it.
func example(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
}

// must panics on an error that only a programming mistake can cause.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
