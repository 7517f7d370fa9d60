// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hubs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/leak"
)

func TestNext_PrefersUntriedThenLongestAgo(t *testing.T) {
	h := &Hubs{Candidates: []Candidate{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	var givenUp []registration.GivenUpHub
	using := "c" // is given up after a long time: all others are new again
	for i, want := range []string{"a", "b", "c", "a", "b", "c"} {
		givenUp = h.merge(append(givenUp, registration.GivenUpHub{Name: using}))
		using = h.next(givenUp)
		if using != want {
			t.Fatalf("%d: the next is %s, want %s, after %+v", i, using, want, givenUp)
		}
	}
	if g := givenUp[len(givenUp)-1]; g.Name != "b" || g.Times != 2 || len(givenUp) != 3 {
		t.Errorf("it is remembered: %+v", givenUp)
	}
	h.Candidates = h.Candidates[1:]
	if merged := h.merge(givenUp); slices.ContainsFunc(merged, func(g registration.GivenUpHub) bool { return g.Name == "a" }) {
		t.Errorf("one that is not listed any more is remembered: %+v", merged)
	}
}

func TestOptions_ErrorsNameFlag(t *testing.T) {
	many := make([]string, registration.MaxHubs+1)
	for i := range many {
		many[i] = "/" + string(rune('a'+i)) + "/kubeconfig"
	}
	for want, o := range map[string]Options{
		"":                                      {Files: []string{"/s/a/kubeconfig", "/s/b/kubeconfig"}, TimeoutSeconds: 180},
		"--hub-connection-timeout-seconds must": {TimeoutSeconds: 179},
		"with different names":                  {Files: []string{"/s/a/kubeconfig", "/t/a/kubeconfig"}, TimeoutSeconds: 600},
		"must have at most 10":                  {Files: many, TimeoutSeconds: 600},
	} {
		errs := o.Validate()
		if got := len(errs); (got == 0) != (want == "") || got > 0 && !strings.Contains(errs[0].Error(), want) {
			t.Errorf("got %v, want %q", errs, want)
		}
	}
}

// TestAttack_BootstrapKubeconfigOfOtherParty: another party's kubeconfig must not make the agent start programs, read files of the pod, or use a
// hub without verification; and errors quote nothing of it.
func TestAttack_BootstrapKubeconfigOfOtherParty(t *testing.T) {
	const token, good = "hunter2-hunter2-hunter2-hunter2", `server: "https://hub.example"`
	dir := t.TempDir()
	for name, test := range map[string]struct {
		cluster, user string
		good          bool
	}{
		"a token":              {good, "token: " + token, true},
		"a program":            {good, "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never}", false},
		"a provider":           {good, "auth-provider: {name: oidc}", false},
		"the token of the pod": {good, "tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token", false},
		"a file beside it":     {good, "tokenFile: token", false},
		"a CA of the pod":      {good + ", certificate-authority: /etc/passwd", "token: " + token, false},
		"no TLS":               {`server: "http://hub.example"`, "token: " + token, false},
		"no verification":      {good + ", insecure-skip-tls-verify: true", "token: " + token, false},
		"another proxy":        {good + `, proxy-url: "gopher://x"`, "token: " + token, false},
		"credentials in a URL": {`server: "https://u:` + token + `@hub.example"`, "token: " + token, false},
		"no user":              {good, "", false},
	} {
		path := filepath.Join(dir, "kubeconfig")
		content := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n" +
			"clusters: [{name: c, cluster: {" + test.cluster + "}}]\nusers: [{name: u, user: {" + test.user + "}}]\n"
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Candidate{Name: "a", Path: path}.Read()
		if (err == nil) != test.good {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && len((leak.Secrets{"token": []byte(token)}).Find([]byte(err.Error()))) > 0 {
			t.Errorf("%s: the error has the token: %v", name, err)
		}
	}
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, []byte(strings.Repeat("#", 2<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{large, dir, filepath.Join(dir, "none")} {
		if _, err := (Candidate{Name: "a", Path: path}).Read(); err == nil {
			t.Errorf("%s can be read", path)
		}
	}
}
