// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
)

// superviseCommand is the command of the process in the background: it does what `up` does, and then calls Supervise.
const superviseCommand = "supervise"

// folders are the flags that are paths.
var folders = []string{"dir", "bin-dir", "images", "root"}

// inBackground makes the supervisor start the hub, and prints its output.
func inBackground(ctx context.Context, config localhub.Options, flags *pflag.FlagSet) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	args, err := superviseArgs(flags)
	if err != nil {
		return err
	}
	return localhub.StartSupervisor(ctx, config, os.Stdout, program, args...)
}

// superviseArgs returns the flags of `up` for a process with a different working directory.
func superviseArgs(flags *pflag.FlagSet) (args []string, err error) {
	args = []string{superviseCommand}
	flags.VisitAll(func(f *pflag.Flag) {
		value := f.Value.String()
		switch {
		case f.Name == "help":
			return
		case slices.Contains(folders, f.Name) && value != "":
			absolute, e := filepath.Abs(value)
			value, err = absolute, errors.Join(err, e)
		}
		args = append(args, "--"+f.Name+"="+value)
	})
	return args, err
}

func newSuperviseCommand(config *localhub.Options, up func(context.Context) error) *cobra.Command {
	return &cobra.Command{
		Use: superviseCommand, Short: "Start the hub like `up`, and restart processes that exit", Args: cobra.NoArgs, Hidden: true,
		RunE: func(*cobra.Command, []string) error {
			// Ctrl-C at `up` ends the start alone: what ran before is still supervised.
			ending, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
			defer stop()
			starting, stop := signal.NotifyContext(ending, os.Interrupt)
			defer stop()
			err := up(starting)
			if starting.Err() != nil {
				err = errors.New("interrupted")
			}
			if err := localhub.Report(config.Dir, err); err != nil {
				return err
			}
			return localhub.Supervise(ending, config.Dir, printTimed)
		},
	}
}

// printTimed prints a message with its time, for the logs of processes in the background.
func printTimed(format string, args ...any) {
	fmt.Printf("%s %s\n", time.Now().UTC().Format(time.RFC3339), fmt.Sprintf(format, args...))
}
