// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

var fleetOnce sync.Once

// fleet is the shared hub with the example fleet on it. Other tests make clusters besides, so what is counted here has a label.
func fleet(t *testing.T) *localhub.Instance {
	t.Helper()
	h := harness.Hub(t)
	fleetOnce.Do(func() {
		files := filepath.Join(harness.Root, "artifacts", "examples", "fleet")
		harness.MustKubectlOf(t, h, "", "apply", "--server-side", "-f", files)
		harness.MustKubectlOf(t, h, "", "apply", "--server-side", "--force-conflicts", "--subresource=status", "-f", filepath.Join(files, "status"))
		harness.MustKubectlOf(t, h, "", "apply", "--server-side", "-f", filepath.Join(files, "placements"))
	})
	return h
}

// dana serves the page for a member of a team of the example fleet, who may list nothing but members.
func dana(t *testing.T, h *localhub.Instance) *served {
	t.Helper()
	return serve(t, h, "dana", "--as-group", "dev-team")
}

// view opens a view of the page, and waits until all of it is read and it has these texts.
func (b *tab) view(s *served, path string, texts ...string) {
	b.t.Helper()
	b.goTo(s.url + path)
	b.read()
	b.waitText(texts...)
}

// read waits until no section waits for its first answer.
func (b *tab) read() {
	b.t.Helper()
	b.wait("all of it is read", `document.querySelector("main h1") && ![...document.querySelectorAll(".summary")].some((e) => e.textContent === "Reading …")`)
}

// scheme is light or dark, as a user has set it in the system.
func (b *tab) scheme(name string) {
	b.t.Helper()
	b.do("the colors", chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
		})
		return err
	}))
}

// wantAccessibleInAllColors lets axe look at the page in both schemes, whose backgrounds have to differ.
func (b *tab) wantAccessibleInAllColors() {
	b.t.Helper()
	const background = `getComputedStyle(document.body).backgroundColor`
	b.scheme("dark")
	dark := eval[string](b, background)
	b.wantAccessible()
	b.scheme("light")
	if light := eval[string](b, background); light == dark {
		b.t.Errorf("the background is %s in light and in dark", light)
	}
	b.wantAccessible()
}

// lines are the commands that the page shows as giving the same.
func (b *tab) lines() []string {
	b.t.Helper()
	return eval[[]string](b, `[...document.querySelectorAll(".line code")].map((e) => e.textContent)`)
}

func TestViews_Admin(t *testing.T) {
	h := fleet(t)
	s := serve(t, h, "")
	b := open(t, s, "/")
	commands := map[string]bool{}
	for _, v := range []struct {
		path  string
		texts []string
	}{
		{"/v/clusters?l=env", []string{"toronto-1", "Not available", "The kube-apiserver is not ok", "Waits to be accepted", "1 not available"}},
		{"/v/clusters/tokyo-1", []string{"Managed cluster is available", "apacset", "region=apac puts it there", "the set has every cluster"}},
		{"/v/sets", []string{"production-emea-amer", "env is production", "every cluster", "4 ManagedClusters selected"}},
		{"/v/sets/devset", []string{"a cluster is in one such set only", "4 members: 4 available.", "dev-team", "Bound"}},
		{"/v/placements", []string{"cache", "middleware", "Satisfied"}},
		{"/v/placements/middleware/cache", []string{"3 chosen", "Not needed: other clusters are preferred", "Balance=", "cache-decision-1"}},
		{"/v/works", []string{"Rollouts", "Works of clusters"}},
		{"/v/access", []string{"Access requests"}},
		{"/v/edge", []string{"Nothing is placed on edge nodes.", "Edge nodes"}},
		{"/v/joining", []string{"lab-1", "hub accept --clusters lab-1 --wait"}},
		{"/v/rights", []string{"Do everything with clusters, sets, bindings and placements"}},
		{"/v/why/cluster/toronto-1", []string{"Step by step", "Broken", "What to do", "Who may do what with it", "system:masters"}},
		{"/v/why/member/tokyo-1/devset", []string{"Step by step", "Broken"}},
		{"/v/why/placement/middleware/cache/tokyo-1", []string{"Step by step"}},
		{"/v/why/access?user=dana&verb=get&what=set/nothing", []string{"Step by step", "Broken"}},
		{"/v/doctor", []string{"What was checked"}},
		{"/v/hub", []string{"v1alpha1.view.clusterhub.dev", "clusterhub-system/hub-apiserver", "hub-controller-manager", "etcd-readiness", "gitVersion", "Components and storage", "etcd of the front"}},
	} {
		b.view(s, v.path, v.texts...)
		b.wantAccessibleInAllColors()
		if problems := eval[string](b, `[...document.querySelectorAll(".problem")].map((e) => e.textContent).join("")`); problems != "" {
			t.Errorf("%s: an admin is shown: %s", v.path, problems)
		}
		lines := b.lines()
		if len(lines) == 0 {
			t.Errorf("%s has no command that gives the same", v.path)
		}
		for _, line := range lines {
			commands[line] = true
		}
	}
	b.view(s, "/v/nothing", "Page not found")
	wantCommands(t, h, commands)
}

// wantCommands runs the commands of the page in a shell, as users who paste them do.
func wantCommands(t *testing.T, h *localhub.Instance, commands map[string]bool) {
	t.Helper()
	home := t.TempDir()
	for line := range commands {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
		cmd.Env = []string{"HOME=" + home, "KUBECONFIG=" + h.AdminKubeconfig(), "PATH=" + harness.BinDir(t) + ":" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		// That something is broken is an answer of why, and of the doctor.
		asks := strings.HasPrefix(line, "kubectl hub why ") || strings.HasPrefix(line, "kubectl hub doctor")
		if answered := asks && cmd.ProcessState.ExitCode() == 2; err != nil && !answered {
			t.Errorf("%s: %v: %s", line, err, out)
		}
	}
}

func TestViews_TeamMember(t *testing.T) {
	h := fleet(t)
	s := dana(t, h)
	b := open(t, s, "/")
	// The page begins with what the user may see, not with an error.
	b.read()
	b.waitText("acting for dana", "You may not list all clusters.", "4 members: 4 available.", "paris-1", "devset")
	b.wantAccessibleInAllColors()
	if strings.Contains(b.shown(), "tokyo-1") {
		t.Errorf("the page shows a cluster of another team:\n%s", b.shown())
	}
	for _, v := range []struct {
		path  string
		texts []string
	}{
		{"/v/clusters/paris-1", []string{"This is what its sets show.", "clusterset=devset puts it there", "You lack the right to list leases in the namespace paris-1"}},
		{"/v/clusters/tokyo-1", []string{"It is in no set that you may see."}},
		{"/v/clusters?l=info.open-cluster-management.io/region=emea", []string{"2 members: 2 available."}},
		{"/v/sets", []string{"devset", "1 set."}},
		{"/v/sets/devset", []string{"4 members: 4 available.", "You lack the right to list managedclustersetbindings in all namespaces"}},
		{"/v/placements", []string{"You lack the right to list placements in all namespaces"}},
		{"/v/rights?n=dev-team", []string{
			"See the set devset, and which clusters are in it", "Bind the set devset to namespaces in which you may make bindings",
			"Set the label cluster.open-cluster-management.io/clusterset of clusters to devset", "managedclustersetbindings",
		}},
		{"/v/joining", []string{"You lack the right to list managedclusters"}},
		{"/v/why/cluster/paris-1", []string{"What you may not see", "you may not get managedclusters paris-1, nor is it in a set whose clusters you may get", "you may not list clusterroles"}},
		{"/v/hub", []string{"You lack the right to list apiservices", "etcd-readiness"}},
	} {
		b.view(s, v.path, v.texts...)
		b.wantAccessible()
	}
}

func TestViews_NoRights(t *testing.T) {
	h := fleet(t)
	s := serve(t, h, harness.Unique("stranger"))
	b := open(t, s, "/")
	b.read()
	b.waitText("There are no sets with clusters that you may see.")
	b.wantAccessible()
	b.view(s, "/v/sets", "There are no sets that you may see: you need the right to get managedclustersets")
	b.view(s, "/v/sets/devset", "You lack the right to get managedclustersets.clusterview.open-cluster-management.io devset", "The set has no clusters that you may see.")
	b.view(s, "/v/works", "You lack the right to list manifestworkreplicasets in all namespaces")
	b.view(s, "/v/rights", "List the members of sets that you may see")
	if strings.Contains(b.shown(), "Do everything") {
		t.Errorf("a user without rights is told of some:\n%s", b.shown())
	}
}

func TestViews_WithoutSession(t *testing.T) {
	s := serve(t, fleet(t), "")
	b := newTab(t, 800, 600)
	b.goTo(s.url + "/v/clusters")
	b.waitText("This browser is not let in, or not any more: press Enter where kubectl hub ui runs")
	b.wantAccessible()
}
