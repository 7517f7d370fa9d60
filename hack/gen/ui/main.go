// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command ui makes what the page of `kubectl hub ui` is served from: the types of our objects for its TypeScript, and the one script
// that the browser gets. It is a module of its own, because the product needs no bundler.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	schema := flag.String("schema", "", "OpenAPI v2 of our types, as hack/gen/models-schema prints it; without it, types.ts stays as it is.")
	web := flag.String("web", "", "The folder of the TypeScript, pkg/ui/web.")
	out := flag.String("out", "", "The folder to write app.js to, pkg/ui/assets; with --tests that of tests.mjs.")
	tests := flag.Bool("tests", false, "Bundle the unit tests of the TypeScript instead of the page.")
	flag.Parse()
	if err := run(*schema, *web, *out, *tests); err != nil {
		fmt.Fprintln(os.Stderr, "ui:", err)
		os.Exit(1)
	}
}

func run(schema, web, out string, tests bool) error {
	if web == "" || out == "" || flag.NArg() > 0 {
		return fmt.Errorf("expected --web and --out, and no arguments, got %q", os.Args[1:])
	}
	if schema != "" {
		document, err := os.ReadFile(schema)
		if err != nil {
			return err
		}
		types, err := typesOf(document)
		if err != nil {
			return fmt.Errorf("%s: %w", schema, err)
		}
		if err := os.WriteFile(filepath.Join(web, "types.ts"), types, 0o644); err != nil {
			return err
		}
	}
	if tests {
		return bundleTests(web, filepath.Join(out, "tests.mjs"))
	}
	return bundlePage(filepath.Join(web, "main.ts"), filepath.Join(out, "app.js"))
}
