// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/clusterhub/clusterhub/pkg/command/tokentest"
)

const kubeconfig = `apiVersion: v1
kind: Config
current-context: context
contexts: [{name: context, context: {cluster: cluster, user: user}}, {name: other, context: {cluster: other, user: other}}]
clusters: [{name: cluster, cluster: {server: "https://SERVER", certificate-authority: ca.crt}}, {name: other, cluster: {server: "https://OTHER"}}]
users: [{name: user, user: {tokenFile: token, client-certificate: tls.crt, client-key: tls.key}}, {name: other, user: {token: s3cret}}]
`

func write(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadWay_SumFollowsContent(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, "kubeconfig", kubeconfig)
	for _, name := range []string{"ca.crt", "token", "tls.crt", "tls.key"} {
		write(t, dir, name, "the "+name)
	}
	sums := func() (way, hub string) {
		t.Helper()
		found, err := ReadKubeconfig(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(found.Config.CAData) != "the ca.crt" && string(found.Config.CAData) != "x" {
			t.Errorf("it is trusted by %q", found.Config.CAData)
		}
		hub, err = HubSum(path)
		if err != nil {
			t.Fatal(err)
		}
		return found.Sum, hub
	}
	for _, test := range []struct {
		what, file, content string
		way, hub            bool
	}{
		{"another token in the file", "token", "x", false, false},
		{"another certificate in the file", "tls.crt", "x", false, false},
		{"another key in the file", "tls.key", "x", false, false},
		{"a comment", "kubeconfig", "# changed\n" + kubeconfig, false, false},
		{"a context that is not the current one", "kubeconfig", strings.ReplaceAll(kubeconfig, "OTHER", "another"), false, false},
		{"a token that the file outdoes", "kubeconfig", strings.ReplaceAll(kubeconfig, "tokenFile: token", "tokenFile: token, token: t"), false, false},
		{"another server", "kubeconfig", strings.ReplaceAll(kubeconfig, "SERVER", "another"), true, true},
		{"a proxy", "kubeconfig", strings.ReplaceAll(kubeconfig, "certificate-authority", `proxy-url: "http://proxy", certificate-authority`), true, true},
		{"a server name", "kubeconfig", strings.ReplaceAll(kubeconfig, "certificate-authority", "tls-server-name: x, certificate-authority"), true, true},
		{"another user", "kubeconfig", strings.ReplaceAll(kubeconfig, "tokenFile: token", "tokenFile: token, as: x"), true, false},
		{"another CA", "ca.crt", "x", true, true},
	} {
		way, hub := sums()
		write(t, dir, test.file, test.content)
		nowWay, nowHub := sums()
		if changed := nowWay != way; changed != test.way {
			t.Errorf("%s: it is another way: %t", test.what, changed)
		}
		if changed := nowHub != hub; changed != test.hub {
			t.Errorf("%s: it is another hub: %t", test.what, changed)
		}
		if test.file == "kubeconfig" {
			write(t, dir, test.file, kubeconfig)
		}
	}
}

func TestReadWay_ErrorsQuoteNothing(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"nothing there":       filepath.Join(dir, "none"),
		"nonsense":            write(t, dir, "nonsense", "s3cret: [s3cret"),
		"empty":               write(t, dir, "empty", ""),
		"no context":          write(t, dir, "context", strings.ReplaceAll(kubeconfig, "current-context: context", "current-context: s")),
		"no CA":               write(t, dir, "ca", kubeconfig),
		"a proxy of nonsense": write(t, dir, "proxy", strings.ReplaceAll(kubeconfig, "certificate-authority: ca.crt", `proxy-url: "gopher://u:s3cret@x"`)),
		"no token":            write(t, dir, "token-missing", strings.ReplaceAll(kubeconfig, "certificate-authority: ca.crt", "")),
		"a pipe":              filepath.Join(dir, "fifo"),
		"a folder":            dir,
		"too much":            write(t, dir, "large", strings.Repeat("#", maxSize+1)),
	} {
		if way, err := ReadKubeconfig(path); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v, %+v", name, err, way)
		}
	}
}

func TestReadWay_FollowsTokenFile(t *testing.T) {
	g := tokentest.New(t)
	for name, read := range map[string]func(string) (Kubeconfig, error){"a kubeconfig": ReadKubeconfig, "a mounted kubeconfig": ReadMountedKubeconfig} {
		way, err := read(g.Path("kubeconfig"))
		if err != nil {
			t.Fatal(err)
		}
		client := kubernetes.NewForConfigOrDie(way.Config)
		g.Follows(name, func() error { return tokentest.Asks(client) })
	}
}

// A reader gets one version of a mounted Secret, or an error that it is being replaced.
func TestReadFolder_IsConsistent(t *testing.T) {
	dir := t.TempDir()
	names := []string{"a", "b", "c"}
	publish := func(n int) {
		version := fmt.Sprintf("..v%d", n)
		if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
			t.Error(err)
		}
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(dir, version, name), []byte(version), 0o600); err != nil {
				t.Error(err)
			}
		}
		if err := os.Symlink(version, filepath.Join(dir, "..tmp")); err != nil {
			t.Error(err)
		}
		if err := os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Error(err)
		}
		if n > 0 {
			if err := os.RemoveAll(filepath.Join(dir, fmt.Sprintf("..v%d", n-1))); err != nil {
				t.Error(err)
			}
		}
	}
	publish(0)
	for _, name := range names {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	var ended atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer ended.Store(true)
		for n := 1; n <= 300; n++ {
			publish(n)
		}
	}()
	whole := 0
	for !ended.Load() || whole == 0 {
		data, err := ReadFolder(dir, append(names, "d")...)
		if err != nil {
			continue
		}
		whole++
		if len(data) != 3 || string(data["a"]) != string(data["b"]) || string(data["b"]) != string(data["c"]) {
			t.Fatalf("it has read %q", data)
		}
	}
	<-done
}

func TestReadFolder_PlainFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a", "x")
	write(t, dir, "c", "y")
	if data, err := ReadFolder(dir, "a", "b"); err != nil || len(data) != 1 || string(data["a"]) != "x" {
		t.Errorf("got %q, %v", data, err)
	}
	if data, err := ReadFolder(filepath.Join(dir, "none"), "a"); err != nil || len(data) > 0 {
		t.Errorf("without a folder: %q, %v", data, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	if data, err := ReadFolder(dir, "a", "b"); err == nil {
		t.Errorf("a folder in place of a file: %q", data)
	}
}

// TestAttack_MountedKubeconfigCannotNamePodFiles: a user who may write its Secret, and nothing else, can neither have a token of the pod sent to
// another server, nor have a program started.
func TestAttack_MountedKubeconfigCannotNamePodFiles(t *testing.T) {
	dir, pod := t.TempDir(), t.TempDir()
	for _, name := range []string{"ca.crt", "token", "tls.crt", "tls.key"} {
		write(t, dir, name, "the "+name)
	}
	secret := write(t, pod, "s3cret", "s3cret")
	away, err := filepath.Rel(dir, secret)
	if err != nil {
		t.Fatal(err)
	}
	const user = "tokenFile: token, client-certificate: tls.crt, client-key: tls.key"
	for name, test := range map[string]struct {
		user string
		good bool
	}{
		"files beside it":       {user, true},
		"a token":               {"token: t", true},
		"a token of the pod":    {"tokenFile: " + secret, false},
		"a file of the pod":     {"tokenFile: " + away, false},
		"a certificate of it":   {"client-certificate: " + secret + ", client-key: tls.key", false},
		"a key of it":           {"client-certificate: tls.crt, client-key: " + away, false},
		"a program":             {"exec: {apiVersion: client.authentication.k8s.io/v1, command: cat, args: [" + secret + "], interactiveMode: Never}", false},
		"a provider":            {"auth-provider: {name: oidc}", false},
		"a program and a token": {"tokenFile: token, auth-provider: {name: oidc}", false},
	} {
		path := write(t, dir, "kubeconfig", strings.ReplaceAll(kubeconfig, user, test.user))
		if way, err := ReadMountedKubeconfig(path); (err == nil) != test.good || err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %+v, %v", name, way.Config, err)
		}
	}
}
