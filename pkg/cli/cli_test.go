// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/clusterhub/clusterhub/pkg/agent"
	"github.com/clusterhub/clusterhub/pkg/deploy"
)

func newGlobal() (*global, *bytes.Buffer) {
	out := &bytes.Buffer{}
	return &global{IOStreams: genericiooptions.IOStreams{Out: io.Discard, ErrOut: out}}, out
}

func TestAwait_IsSilentWhenDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, out := newGlobal()
		looks := 0
		err := g.await(t.Context(), "it", func(context.Context) (bool, string, error) {
			looks++
			return looks == 2, "not yet", nil
		})
		if err != nil || looks != 2 || out.Len() > 0 {
			t.Errorf("%v after %d looks: %s", err, looks, out)
		}
	})
}

func TestAwait_ReportsProgressAndTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, out := newGlobal()
		w := &waiting{timeout: quietFor + 2*pollInterval}
		ctx, cancel := w.limit(t.Context())
		defer cancel()
		err := g.await(ctx, "it", func(context.Context) (bool, string, error) { return false, "not yet", nil })
		if err == nil || err.Error() != "waiting for it: not within --timeout=3s: not yet" {
			t.Errorf("got %v", err)
		}
		if got := out.String(); strings.Count(got, "Waiting for it: not yet ...") != 1 {
			t.Errorf("said %q", got)
		}
	})
}

func TestAwait_RetriesTransientErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := newGlobal()
		refused := &url.Error{Op: "Get", URL: "https://hub", Err: syscall.ECONNREFUSED}
		looks, wrong := 0, errors.New("wrong")
		err := g.await(t.Context(), "it", func(context.Context) (bool, string, error) {
			looks++
			if looks == 1 {
				return false, "", refused
			}
			return false, "", wrong
		})
		if !errors.Is(err, wrong) || looks != 2 {
			t.Errorf("%v after %d looks", err, looks)
		}
	})
}

func TestAwait_IsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := newGlobal()
		ctx, cancel := context.WithCancel(t.Context())
		err := g.await(ctx, "it", func(context.Context) (bool, string, error) {
			cancel()
			return false, "", ctx.Err()
		})
		if err == nil || !strings.Contains(err.Error(), "interrupted") {
			t.Errorf("got %v", err)
		}
	})
}

// TestAwait_EscapesControlCharacters verifies that the reason that a wait prints, which an object or a pod provides, is escaped: the terminal shows control
// characters and does not act on them.
func TestAwait_EscapesControlCharacters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, out := newGlobal()
		w := &waiting{timeout: time.Minute}
		ctx, cancel := w.limit(t.Context())
		defer cancel()
		looks := 0
		err := g.await(ctx, "it", func(context.Context) (bool, string, error) {
			looks++
			if looks%2 == 0 {
				return false, "", &url.Error{Op: "Get", URL: "https://hub", Err: &net.OpError{Op: "dial", Err: errors.New("\x1b[1A\nb")}}
			}
			return false, "a\x1b[2J\u202e\nError: b", nil
		})
		said := out.String() + err.Error()
		if strings.Count(out.String(), "\n") < 2 || strings.Contains(said, "\x1b") || strings.Contains(said, "\u202e") || strings.Contains(said, "\nError") ||
			strings.Contains(said, "\nb") {
			t.Errorf("it says %q", said)
		}
		g.warn("%s", "a\x1b[2J\nError: b")
		if got := out.String(); !strings.HasSuffix(got, "Warning: a\\x1b[2J\\nError: b\n") {
			t.Errorf("it warns %q", got)
		}
	})
}

func TestParseLabels(t *testing.T) {
	changes, err := parseLabels([]string{"a=b", "example.com/c=", "d-", "e=f=g"})
	if err == nil {
		t.Errorf("a value with = in it: %v", changes)
	}
	changes, err = parseLabels([]string{"a=b", "example.com/c=", "d-", "g=h.1"})
	if err != nil || len(changes) != 4 || *changes["a"] != "b" || *changes["example.com/c"] != "" || changes["d"] != nil || *changes["g"] != "h.1" {
		t.Errorf("got %v, %v", changes, err)
	}
	for _, args := range [][]string{{"a"}, {"=b"}, {"-"}, {"a=b", "a-"}, {"a b=c"}, {"a=b c"}, {"A/B/c=d"}} {
		if changes, err := parseLabels(args); err == nil {
			t.Errorf("%q: %v", args, changes)
		}
	}
}

func TestImageOf_ReleasedVersionsOnly(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3": "clusterhub/hub-agent:v1.2.3", "v1.2.3-4-gabcdef0-dirty": "clusterhub/hub-agent:v1.2.3-4-gabcdef0-dirty",
		"abcdef0": "clusterhub/hub-agent:abcdef0",
		// No image was built with these versions.
		"(devel)": "", UnknownVersion: "", "": "", "v1.2.3+dirty": "",
		"v0.0.0-20260101000000-abcdefabcdef": "", "v1.2.4-0.20260101000000-abcdefabcdef": "",
	} {
		if got := imageOf(defaultImage, version); got != want {
			t.Errorf("%s: %s, want %s", version, got, want)
		}
	}
}

func TestContextARN_AsWrittenByAWSCLI(t *testing.T) {
	const arn = "arn:aws:eks:eu-west-1:123456789012:cluster/hub"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	config := `{"apiVersion": "v1", "kind": "Config", "current-context": "other", "contexts": [
		{"name": "eks", "context": {"cluster": "` + arn + `"}}, {"name": "other", "context": {"cluster": "c"}}]}`
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for context, want := range map[string]string{"eks": arn, "other": "", "": "", "nowhere": ""} {
		g := &global{flags: genericclioptions.NewConfigFlags(true)}
		*g.flags.KubeConfig, *g.flags.Context = file, context
		if got := g.contextARN(); got != want {
			t.Errorf("context %q: %q, want %q", context, got, want)
		}
	}
}

// TestLeaveJob_CopiesPodOfAgent verifies that the Job gets everything that an admin has added to the pod of the agent.
func TestLeaveJob_CopiesPodOfAgent(t *testing.T) {
	deployment := agentDeployment(t)
	spec := &deployment.Spec.Template.Spec
	spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "mine"}}
	spec.Containers[0].Env = []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "http://proxy"}}
	spec.Containers = append([]corev1.Container{{Name: "sidecar"}}, spec.Containers...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	job, err := (&managed{namespace: "n"}).unjoinJobFrom(ctx, deployment)
	if err != nil {
		t.Fatal(err)
	}
	pod := job.Spec.Template.Spec
	c := pod.Containers[1]
	if pod.ServiceAccountName != "klusterlet-registration-sa" || pod.ImagePullSecrets[0].Name != "mine" || c.Env[0].Name != "HTTPS_PROXY" ||
		c.Image != "example.com/agent:1" || c.LivenessProbe != nil || !slices.Contains(c.Args, "--timeout=45s") {
		t.Errorf("the pod is %+v", pod)
	}
	if deployment.Spec.Template.Spec.Containers[1].LivenessProbe == nil {
		t.Error("the Deployment has changed")
	}
}

// unjoinJobOf returns the Job by which the agent of a Deployment unjoins.
func unjoinJobOf(ctx context.Context, deployment *appsv1.Deployment, scoped bool) (*batchv1.Job, error) {
	return (&managed{namespace: deployment.Namespace, scoped: scoped}).unjoinJobFrom(ctx, deployment)
}

func agentDeployment(t *testing.T, args ...string) *appsv1.Deployment {
	t.Helper()
	objects, err := deploy.Agent{Image: "example.com/agent:1", Args: args}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	deployment := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[len(objects)-1].Object, deployment); err != nil {
		t.Fatal(err)
	}
	return deployment
}

// TestAgent_FlagsAreValid verifies that the deployed agent starts: hub-agent accepts the flags.
func TestAgent_FlagsAreValid(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	for auth, more := range map[string][]string{
		authCSR: nil,
		authAWS: {"--hub-cluster-arn=arn:aws:eks:eu-west-1:123456789012:cluster/hub", "--managed-cluster-arn=arn:aws:eks:eu-west-1:123456789012:cluster/c1"},
	} {
		deployment := agentDeployment(t, append([]string{"--cluster-name=c1", "--registration-auth=" + auth}, more...)...)
		o := agent.NewOptions()
		flags := pflag.NewFlagSet("hub-agent", pflag.ContinueOnError)
		for _, set := range o.Flags().FlagSets {
			flags.AddFlagSet(set)
		}
		if err := errors.Join(flags.Parse(deployment.Spec.Template.Spec.Containers[0].Args), o.Validate()); err != nil {
			t.Errorf("%s: %v", auth, err)
		}
	}
}

func TestJoin_ReportsClusterURL(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	config := `{"apiVersion": "v1", "kind": "Config", "contexts": [
		{"name": "far", "context": {"cluster": "far"}}, {"name": "near", "context": {"cluster": "near"}}], "clusters": [
		{"name": "far", "cluster": {"server": "https://c1.example.com"}}, {"name": "near", "cluster": {"server": "https://127.0.0.1:6443"}}]}`
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ context, flag, want string }{
		{"far", "", "--cluster-server-url=https://c1.example.com"}, {"near", "", ""}, {"nowhere", "", ""},
		{"near", "https://other:6443", "--cluster-server-url=https://other:6443"},
	} {
		g := &global{flags: genericclioptions.NewConfigFlags(true)}
		*g.flags.KubeConfig, *g.flags.Context = file, c.context
		o := &joinOptions{global: g, serverURL: c.flag}
		if err := o.validateServerURL(); err != nil {
			t.Fatal(err)
		}
		deployed, err := o.agent()
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, arg := range deployed.Args {
			if strings.HasPrefix(arg, "--cluster-server-url=") {
				got = arg
			}
		}
		if got != c.want || (got != "") != slices.Contains(deployed.Args, "--cluster-ca-file="+clusterCAFile) {
			t.Errorf("context %s, flag %q: %q", c.context, c.flag, deployed.Args)
		}
	}
	for _, wrong := range []string{"http://c1", "c1", "https://"} {
		if err := (&joinOptions{serverURL: wrong}).validateServerURL(); err == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
}
