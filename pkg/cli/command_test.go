// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/cli"
	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
)

func TestVersion(t *testing.T) {
	config := filepath.Join(t.TempDir(), "none") // no server is used
	if got := clitest.MustRun(t, config, "version"); got != "kubectl-hub v1.2.3\n" {
		t.Errorf("it prints %q", got)
	}
	var result struct{ Version string }
	if err := json.Unmarshal([]byte(clitest.MustRun(t, config, "version", "-o", "json")), &result); err != nil || result.Version != "v1.2.3" {
		t.Errorf("-o json: %v: %+v", err, result)
	}
}

// commands returns all commands, except those that cobra adds.
func commands(t *testing.T) (all []*cobra.Command) {
	t.Helper()
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		all = append(all, cmd)
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(cli.NewCommand(streams, "v1"))
	if len(all) < 14 {
		t.Fatalf("there are %d commands only", len(all))
	}
	return all
}

// TestHelp_DescribesEveryFlag verifies that every flag of ours has a description that is a sentence.
func TestHelp_DescribesEveryFlag(t *testing.T) {
	kubectls := pflag.NewFlagSet("", pflag.ContinueOnError)
	genericclioptions.NewConfigFlags(true).AddFlags(kubectls)
	borrowed := []string{"allow-missing-template-keys", "show-managed-fields", "template"} // text of kubectl
	sentence := regexp.MustCompile(`^("|[A-Z]|https ).*[.)]$`)
	for _, cmd := range commands(t) {
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: %q is no title", cmd.CommandPath(), cmd.Short)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && kubectls.Lookup(f.Name) == nil && !slices.Contains(borrowed, f.Name) && !sentence.MatchString(f.Usage) {
				t.Errorf("%s --%s: %q is no sentence", cmd.CommandPath(), f.Name, f.Usage)
			}
		})
	}
}

// TestHelp_ExamplesAreValid verifies that examples use commands and flags that exist.
func TestHelp_ExamplesAreValid(t *testing.T) {
	shown := 0
	for _, cmd := range commands(t) {
		for _, line := range strings.Split(cmd.Example, "\n") {
			args, ok := strings.CutPrefix(strings.TrimSpace(line), "kubectl hub ")
			if !ok {
				continue
			}
			shown++
			target, rest, err := cmd.Root().Find(strings.Fields(args))
			if err != nil || target == cmd.Root() {
				t.Errorf("%s shows %q: %v", cmd.CommandPath(), line, err)
				continue
			}
			for _, arg := range rest {
				name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
				if !strings.HasPrefix(arg, "-") {
					continue
				}
				if f := target.Flag(name); f == nil && target.Flags().ShorthandLookup(name[:1]) == nil {
					t.Errorf("%s shows %q, and there is no flag %s", cmd.CommandPath(), line, arg)
				}
			}
		}
	}
	if shown < 10 {
		t.Errorf("there are %d examples only", shown)
	}
}

// TestHelp_HidesKubectlFlags verifies that help shows only the few flags of kubectl that matter here, and does not show --cluster, which
// would mean something else.
func TestHelp_HidesKubectlFlags(t *testing.T) {
	config := filepath.Join(t.TempDir(), "none")
	help := clitest.MustRun(t, config, "get", "clusters", "--help")
	clitest.Says(t, help, "--context", "--as ", "--request-timeout", "-v, --v", "--clusterset", "kubectl hub get clusters --clusterset production")
	for _, hidden := range []string{"--client-key", "--insecure-skip-tls-verify", "--cluster ", "--namespace"} {
		if strings.Contains(help, hidden) {
			t.Errorf("help shows %s", hidden)
		}
	}
	if got := clitest.MustRun(t, config, "get"); !strings.Contains(got, "clustersets") {
		t.Errorf("get alone prints %q", got)
	}
}

// TestComplete: the shell requests completions at each key press, so the command prints nothing else, even if it fails.
func TestComplete(t *testing.T) {
	s, config := clitest.NewFleet(t)
	shop := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }
	for _, o := range []runtime.Object{&edgev1alpha1.DeploymentPolicy{ObjectMeta: shop("web")}, &edgev1alpha1.DeploymentPattern{ObjectMeta: shop("store")},
		&edgev1alpha1.EdgeNode{ObjectMeta: metav1.ObjectMeta{Name: "edge-1"}}, &edgev1alpha1.EdgeNode{ObjectMeta: metav1.ObjectMeta{Name: "edge-2"}}} {
		s.Put(o)
	}
	lines := func(args ...string) []string {
		t.Helper()
		stdout, _, err := clitest.Run(t, config, append([]string{cobra.ShellCompRequestCmd}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(stdout), "\n")
	}
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"accept", "--clusters", ""}, []string{"c1", "c2", ":4"}},
		{[]string{"accept", "--clusters", "c2,c"}, []string{"c2,c1", "c2,c2", ":4"}},
		{[]string{"accept", "--cluster", "c1"}, []string{"c1", ":4"}},
		{[]string{"label", "c"}, []string{"c1", "c2", ":4"}},
		{[]string{"label", "c1", ""}, []string{":4"}},
		{[]string{"members", "p"}, []string{"production", ":4"}},
		{[]string{"get", "clusters", "--clusterset", "x"}, []string{":4"}},
		{[]string{"get", "clusters", "--context", ""}, []string{"hub", ":4"}},
		{[]string{"join", "--registration-auth", ""}, []string{"csr", "awsirsa", ":4"}},
		{[]string{"accept", "-o", ""}, []string{"text", "json", ":4"}},
		{[]string{"tree", "set", "p"}, []string{"production", ":4"}},
		{[]string{"tree", "cluster", "c"}, []string{"c1", "c2", ":4"}},
		{[]string{"tree", "cluster", "c1", "-o", ""}, []string{"text", "json", "yaml", ":4"}},
		{[]string{"top", "sets", "--sort-by", ""}, []string{"members", "missing", "name", ":4"}},
		{[]string{"deploycheck", "-n", "shop", "--policy", ""}, []string{"web", ":4"}},
		{[]string{"deploycheck", "-n", "other", "--policy", ""}, []string{":4"}},
		{[]string{"deploycheck", "-n", "shop", "--pattern", "s"}, []string{"store", ":4"}},
		{[]string{"deploycheck", "-n", "shop", "--node", "edge-1,"}, []string{"edge-1,edge-1", "edge-1,edge-2", ":4"}},
		{[]string{"iam-role", "--eks-access", ""}, []string{"access-entry", "aws-auth", ":4"}},
	} {
		if got := lines(test.args...); !slices.Equal(got, test.want) {
			t.Errorf("%q: %q, want %q", test.args, got, test.want)
		}
	}
	s.Refuse("GET "+clitest.SetsPath, clitest.Forbidden("managedclustersets", "list"))
	if got := lines("members", ""); !slices.Equal(got, []string{":1"}) {
		t.Errorf("what may not be listed is completed as %q", got)
	}
}

// TestVerbosity_ShowsRequests verifies that -v prints the requests, and never a token.
func TestVerbosity_ShowsRequests(t *testing.T) {
	_, config := clitest.NewFleet(t)
	_, stderr, err := clitest.Run(t, config, "get", "clusters", "-v", "9")
	if err != nil {
		t.Fatal(err)
	}
	clitest.Says(t, stderr, "managedclusters?limit=500", "verb=\"GET\"")
}
