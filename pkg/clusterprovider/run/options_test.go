// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"strings"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
)

func TestOptions_SayWhatIsWrong(t *testing.T) {
	for want, change := range map[string]func(*options){
		`--provider-name: ""`:  func(o *options) { o.ProviderName = "" },
		`--environment: "A.B"`: func(o *options) { o.Environment = "A.B" },
		`--verbosity: "loud" is none of DEBUG, INFO and ERROR`: func(o *options) { o.verbosity = "loud" },
		"--namespace: clusterhub-access has the token sources": func(o *options) { o.Namespace = "clusterhub-access" },
		"--kubeconfig: stat /none":                             func(o *options) { o.kubeconfig = "/none" },
	} {
		o := &options{Options: clusterprovider.Options{ProviderName: "p", Environment: "e", Namespace: "n"}, verbosity: "Debug"}
		change(o)
		if err := o.complete(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
