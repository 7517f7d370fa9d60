// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"os"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/command/tokentest"
)

func TestOptions_InvalidArguments(t *testing.T) {
	for want, change := range map[string]func(*options){
		`--provider-name: ""`:  func(o *options) { o.ProviderName = "" },
		`--environment: "A.B"`: func(o *options) { o.Environment = "A.B" },
		`--verbosity: must be DEBUG, INFO or ERROR, got "loud"`: func(o *options) { o.verbosity = "loud" },
		"--namespace: clusterhub-access has the token sources":  func(o *options) { o.Namespace = "clusterhub-access" },
		"--kubeconfig: stat /none":                              func(o *options) { o.kubeconfig = "/none" },
	} {
		o := &options{Options: clusterprovider.Options{ProviderName: "p", Environment: "e", Namespace: "n"}, verbosity: "Debug"}
		change(o)
		if err := o.complete(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestLoadHub_ReloadsToken, however the hub is specified.
func TestLoadHub_ReloadsToken(t *testing.T) {
	g := tokentest.New(t)
	check := func(what, path string) {
		t.Helper()
		config, err := loadHub(path)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		client := kubernetes.NewForConfigOrDie(config)
		g.Follows(what, func() error { return tokentest.Asks(client) })
	}
	check("a file", g.Path("kubeconfig"))
	check("a folder with a kubeconfig", g.Dir)
	if err := os.Remove(g.Path("kubeconfig")); err != nil {
		t.Fatal(err)
	}
	check("a folder with host, token and CA", g.Dir)
}
