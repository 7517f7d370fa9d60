// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hubs

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Options are the flags of an agent with several hubs.
type Options struct {
	// Files are the paths of the bootstrap kubeconfigs, in the order in which the hubs are tried. It is empty for an agent with one hub.
	Files []string
	// TimeoutSeconds is the number of seconds without its hub after which an agent switches to the next hub.
	TimeoutSeconds int32
}

// FlagFiles is the name of the flag with the bootstrap kubeconfigs, and FlagTimeout that of the flag with the time after which a hub is given up;
// both are upstream's.
const (
	FlagFiles   = "bootstrap-kubeconfigs"
	FlagTimeout = "hub-connection-timeout-seconds"
)

// NewOptions returns the defaults.
func NewOptions() Options {
	return Options{TimeoutSeconds: registration.DefaultHubTimeoutSeconds}
}

// AddFlags adds the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.Files, FlagFiles, o.Files, fmt.Sprintf(
		"Comma-separated list of the paths to the bootstrap kubeconfigs of several hubs, at most %d, as NAME/kubeconfig in directories of mounted "+
			"Secrets. The cluster joins the first hub that responds and accepts it, and switches to the next one after --%s. The files are reloaded "+
			"when they change, and must not refer to other files or to programs.", registration.MaxHubs, FlagTimeout))
	fs.Int32Var(&o.TimeoutSeconds, FlagTimeout, o.TimeoutSeconds, fmt.Sprintf(
		"The time in seconds for which the lease may fail to be renewed, or a hub may not accept a cluster that is new to it, before the agent switches "+
			"to the next hub of --%s. At least %d.", FlagFiles, registration.MinHubTimeoutSeconds))
}

// Validate returns every error of the flags.
func (o *Options) Validate() (errs []error) {
	if len(o.Files) > registration.MaxHubs {
		errs = append(errs, fmt.Errorf("--%s must have at most %d paths, not %d", FlagFiles, registration.MaxHubs, len(o.Files)))
	}
	known := map[string]string{}
	for _, path := range o.Files {
		name := nameOf(path)
		if before, twice := known[name]; twice {
			errs = append(errs, fmt.Errorf("--%s must have folders with different names, not %s and %s", FlagFiles, before, path))
		}
		known[name] = path
	}
	if o.TimeoutSeconds < registration.MinHubTimeoutSeconds {
		errs = append(errs, fmt.Errorf("--%s must be at least %d, not %d", FlagTimeout, registration.MinHubTimeoutSeconds, o.TimeoutSeconds))
	}
	return errs
}

// Candidates returns the hubs that the flags name.
func (o *Options) Candidates() (all []Candidate) {
	for _, path := range o.Files {
		all = append(all, Candidate{Name: nameOf(path), Path: path})
	}
	return all
}

// Timeout returns the time without its hub after which an agent switches to the next hub.
func (o *Options) Timeout() time.Duration { return time.Duration(o.TimeoutSeconds) * time.Second }

// nameOf returns the name of the mounted Secret with a kubeconfig: the name of its folder.
func nameOf(path string) string {
	if filepath.Base(path) == registration.KeyKubeconfig {
		path = filepath.Dir(path)
	}
	return filepath.Base(path)
}
