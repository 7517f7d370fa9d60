// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command mutants plants the faults of faults.yaml in a copy of the tree, one at a time, and reports which level of tests catches each,
// and at what cost. The levels, in the order of their cost:
//
//	wiring  how programs and manifests are assembled
//	unit    tests of the packages that a fault changes, then of those that import them
//	e2e     the end-to-end tests of the folder that a fault names, with --slow
//
// A fault is tried at the next level only if the tests of the levels before it pass. The test that fails with a fault runs again, with the fault
// and without it: it catches the fault if it fails again and then passes. If it fails without any fault, mutants ends. A test that does not
// compile catches nothing. mutants exits with 1 if a fault is not caught.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	o := options{}
	flag.StringVar(&o.run, "run", "", "Regular expression: only faults with a name that it matches.")
	flag.StringVar(&o.levels, "levels", levelWiring+","+levelUnit, "Levels to try. Without any, it is only looked whether the product compiles with the faults.")
	flag.BoolVar(&o.slow, "slow", false, "Also try the end-to-end tests.")
	flag.BoolVar(&o.list, "list", false, "Only list the faults.")
	flag.BoolVar(&o.keep, "keep", false, "Leave the last fault in the copy of the tree.")
	flag.DurationVar(&o.timeout, "timeout", 20*time.Minute, "How long the tests of a package may take.")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.main(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	run, levels      string
	slow, list, keep bool
	timeout          time.Duration
}

// result is the outcome of a fault.
type result struct {
	fault *fault
	// level is the one that caught it, empty if none did, and test the first test that failed there.
	level, test string
	cost        cost
	err         error
}

func (r result) String() string {
	switch {
	case r.err != nil:
		return "ERROR: " + r.err.Error()
	case r.level == "":
		return "NOT CAUGHT"
	}
	return r.level + ": " + r.test
}

func (o options) main(ctx context.Context, out io.Writer) error {
	// go run leaves the working directory as it is: the root of the repository, or a folder in it.
	root, err := findRoot(".")
	if err != nil {
		return err
	}
	faults, err := load(filepath.Join(root, faultsFile))
	if err != nil {
		return err
	}
	name, err := regexp.Compile(o.run)
	if err != nil {
		return fmt.Errorf("--run: %w", err)
	}
	faults = slices.DeleteFunc(faults, func(f fault) bool { return !name.MatchString(f.Name) })
	if len(faults) == 0 {
		return fmt.Errorf("--run: no fault has a name that matches %s", o.run)
	}
	if o.list {
		return list(out, faults)
	}
	levels := strings.FieldsFunc(o.levels, func(r rune) bool { return r == ',' })
	if o.slow {
		levels = append(levels, levelE2E)
	}
	for _, level := range levels {
		if !slices.Contains([]string{levelWiring, levelUnit, levelE2E}, level) {
			return fmt.Errorf("--levels: there is no level %q", level)
		}
	}
	t, err := copyTree(ctx, root)
	if err != nil {
		return fmt.Errorf("copying the tree: %w", err)
	}
	r := &runner{tree: t, timeout: o.timeout}
	if err := r.readPackages(ctx); err != nil {
		return err
	}
	var results []result
	for i := range faults {
		result := r.try(ctx, &faults[i], levels, o.keep && i == len(faults)-1)
		if ctx.Err() != nil {
			break
		}
		if errors.Is(result.err, errWithoutFault) {
			return fmt.Errorf("fault %s: %w", result.fault.Name, result.err)
		}
		results = append(results, result)
		fmt.Fprintf(out, "%d/%d %s: %s (%s)\n", i+1, len(faults), result.fault.Name, result, result.cost)
	}
	return errors.Join(ctx.Err(), report(out, results))
}

func list(out io.Writer, faults []fault) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i := range faults {
		fmt.Fprintf(w, "%s\t%s\n", faults[i].Name, faults[i].Why)
	}
	return w.Flush()
}

// report prints a table of the results, and returns an error if a fault was not caught.
func report(out io.Writer, results []result) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nFAULT\tSECONDS\tPROCESSOR SECONDS\tCAUGHT BY")
	var total cost
	below, uncaught := 0, 0
	for _, r := range results {
		fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%s\n", r.fault.Name, r.cost.wall.Seconds(), r.cost.cpu.Seconds(), r)
		total.add(r.cost)
		switch {
		case r.err != nil || r.level == "":
			uncaught++
		case r.level != levelE2E:
			below++
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d of %d caught below e2e (%s)\n", below, len(results), total)
	if uncaught > 0 {
		return fmt.Errorf("%d of %d faults were not caught", uncaught, len(results))
	}
	return nil
}
