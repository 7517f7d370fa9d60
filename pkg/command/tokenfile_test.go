// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/command/tokentest"
)

func TestRESTConfig_UsesNewTokenAfterUnauthorized(t *testing.T) {
	g := tokentest.New(t)
	config, err := command.RESTConfig(g.Path("kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	client, another := kubernetes.NewForConfigOrDie(config), kubernetes.NewForConfigOrDie(rest.AddUserAgent(rest.CopyConfig(config), "another"))
	g.Follows("a client", func() error { return tokentest.Asks(client) })
	// All clients of a configuration have the same token.
	if err := tokentest.Asks(another); err != nil || g.Take("three") != 0 {
		t.Errorf("another client: %v", err)
	}
	// The file has no new token yet, or does not exist.
	for n := range 10 {
		if tokentest.Asks(client) == nil {
			t.Error("the server has taken a token that it does not know")
		}
		if n == 5 {
			if err := os.Remove(g.Path("token")); err != nil {
				t.Fatal(err)
			}
		}
	}
	g.Follows("a client that has waited for the file", func() error { return tokentest.Asks(client) })
}

// TestFollowToken_ClientWithOwnToken: a token must not be sent in place of another user's.
func TestFollowToken_ClientWithOwnToken(t *testing.T) {
	g := tokentest.New(t)
	config, err := command.RESTConfig(g.Path("kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	g.Take("own")
	own := rest.CopyConfig(config)
	own.BearerToken = "own"
	if err := tokentest.Ask(t, own); err != nil {
		t.Error(err)
	}
	if err := tokentest.Ask(t, rest.AnonymousClientConfig(config)); err == nil {
		t.Error("a client without credentials was let in")
	}
	if g.Sent("one") || !g.Sent("") {
		t.Error("the token of the file was sent, or one for a client that has none")
	}
}

// TestFollowedToken_ReplacesTokenOfClient: if a client reads a kubeconfig by itself, only its transport can be wrapped.
func TestFollowedToken_ReplacesTokenOfClient(t *testing.T) {
	g := tokentest.New(t)
	config, err := clientcmd.BuildConfigFromFlags("", g.Path("kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	follow, err := command.FollowedToken(g.Path("kubeconfig"))
	if err != nil || follow == nil {
		t.Fatal(err)
	}
	config.Wrap(follow)
	client := kubernetes.NewForConfigOrDie(config)
	g.Follows("a client", func() error { return tokentest.Asks(client) })
}

func TestFollowedToken_TokenFilesOnly(t *testing.T) {
	g := tokentest.New(t)
	data, err := os.ReadFile(g.Path("kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	g.Put("inline", strings.Replace(string(data), "tokenFile: token", "token: inline", 1))
	if follow, err := command.FollowedToken(g.Path("inline")); err != nil || follow != nil {
		t.Errorf("a token in the kubeconfig: %v", err)
	}
	config, err := command.RESTConfig(g.Path("inline"))
	if err != nil || config.BearerToken != "inline" || config.WrapTransport != nil {
		t.Errorf("a token in the kubeconfig: %v", err)
	}
	g.Take("inline")
	if err := tokentest.Ask(t, config); err != nil {
		t.Error(err)
	}
	if _, err := command.FollowedToken(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a kubeconfig that is not there is followed")
	}
}
