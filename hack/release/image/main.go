// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Image makes the container images of our programs, without any container runtime: `make images` uses it. hack/release is a module of
// its own, so that the product does not depend on the libraries for images.
//
// What it makes depends on the programs, the version and the commit alone: whoever builds the same commit gets the same digests.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

type buildSetting = debug.BuildSetting

const usage = `usage:
  image build --version=VERSION --revision=COMMIT --license=FILE --output=DIR ARCH=FOLDER…
      writes an OCI layout for each program to DIR, of the programs in each folder, and the digests to DIR/DIGESTS.
      SOURCE_DATE_EPOCH has to be set to the time of the commit, in seconds.
  image push --from=DIR --prefix=REGISTRY/PREFIX
  image unpack --from=DIR --output=DIR [--arch=ARCH]`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "image: "+err.Error())
		os.Exit(1)
	}
}

func say(format string, args ...any) { fmt.Printf("  "+format+"\n", args...) }

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("expected a command\n%s", usage)
	}
	var r release
	var output, from, prefix, license, arch string
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprintln(os.Stderr, usage) }
	flags.StringVar(&r.version, "version", "", "")
	flags.StringVar(&r.revision, "revision", "", "")
	flags.StringVar(&license, "license", "LICENSE", "")
	flags.StringVar(&output, "output", "", "")
	flags.StringVar(&from, "from", "", "")
	flags.StringVar(&prefix, "prefix", "", "")
	flags.StringVar(&arch, "arch", runtime.GOARCH, "")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	need := func(names ...string) error {
		for _, name := range names {
			if flags.Lookup(name).Value.String() == "" {
				return fmt.Errorf("%s needs --%s\n%s", args[0], name, usage)
			}
		}
		return nil
	}
	switch args[0] {
	case "build":
		if err := need("version", "output"); err != nil {
			return err
		}
		return build(r, license, output, flags.Args())
	case "push":
		if err := need("from", "prefix"); err != nil {
			return err
		}
		return push(ctx, from, prefix, say)
	case "unpack":
		if err := need("from", "output"); err != nil {
			return err
		}
		return unpack(from, arch, output)
	}
	return fmt.Errorf("there is no command %q\n%s", args[0], usage)
}

// build writes the layouts of all components.
func build(r release, license, output string, folders []string) (err error) {
	if len(folders) == 0 {
		return fmt.Errorf("build needs ARCH=FOLDER, such as amd64=_output/bin\n%s", usage)
	}
	epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH has to be the time of the commit in seconds (git log -1 --format=%%ct): %w", err)
	}
	r.created = time.Unix(epoch, 0).UTC()
	r.license, err = os.ReadFile(license)
	if err != nil {
		return err
	}
	digests := ""
	for _, c := range components {
		var programs []*program
		for _, folder := range folders {
			arch, dir, ok := strings.Cut(folder, "=")
			if !ok {
				return fmt.Errorf("%q is not ARCH=FOLDER", folder)
			}
			p, err := programIn(dir, arch, c)
			if err != nil {
				return err
			}
			programs = append(programs, p)
		}
		digest, err := r.layoutOf(filepath.Join(output, c.name), programs)
		if err != nil {
			return fmt.Errorf("the images of %s: %w", c.name, err)
		}
		say("%s:%s@%s", c.name, r.version, digest)
		digests += fmt.Sprintf("%s:%s@%s\n", c.name, r.version, digest)
	}
	return os.WriteFile(filepath.Join(output, "DIGESTS"), []byte(digests), 0o644)
}
