// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/pkg/ui/hubui"
)

// uiValues are those of the way ui.
func uiValues(t *testing.T) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := yaml.Unmarshal(must(os.ReadFile(filepath.Join(Dir(root, Hub), "ci", "ui-values.yaml")))(t), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// uiOf is the Deployment of the page, with its two containers.
func uiOf(t *testing.T, all []*unstructured.Unstructured) (d appsv1.Deployment, page, proxy corev1.Container) {
	t.Helper()
	for _, o := range all {
		if o.GetKind() == "Deployment" && o.GetName() == "hub-ui" {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &d, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	if all := d.Spec.Template.Spec.Containers; len(all) != 2 || all[0].Name != "hub-ui" || all[1].Name != "proxy" {
		t.Fatalf("the containers are %v", all)
	}
	return d, d.Spec.Template.Spec.Containers[0], d.Spec.Template.Spec.Containers[1]
}

// TestUI_HasNoRights verifies that a compromised page gives an attacker nothing: it has no rights and no token, and admits no user without a login.
func TestUI_HasNoRights(t *testing.T) {
	all := objects(t, Hub, HubNamespace, uiValues(t))
	found := false
	for _, o := range all {
		id := o.GetKind() + " " + o.GetName()
		if o.GetKind() == "ServiceAccount" && o.GetName() == "hub-ui" {
			found = true
			if o.Object["automountServiceAccountToken"] != false {
				t.Errorf("%s mounts its token", id)
			}
			continue
		}
		text := string(must(o.MarshalJSON())(t))
		if strings.HasSuffix(o.GetKind(), "Binding") && strings.Contains(text, "hub-ui") || o.GetKind() == "Secret" && strings.Contains(text, "hub-ui") {
			t.Errorf("%s is about the page", id)
		}
	}
	if !found {
		t.Error("there is no ServiceAccount hub-ui: its pods would have the one of the namespace")
	}

	d, page, proxy := uiOf(t, all)
	spec := d.Spec.Template.Spec
	if spec.ServiceAccountName != "hub-ui" || spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken || spec.HostNetwork {
		t.Errorf("the pods are %s, and mount its token: %v", spec.ServiceAccountName, spec.AutomountServiceAccountToken)
	}
	for _, v := range spec.Volumes {
		if v.Projected != nil || v.HostPath != nil || v.CSI != nil {
			t.Errorf("the volume %s could have a token", v.Name)
		}
	}
	for _, c := range []corev1.Container{page, proxy} {
		s := c.SecurityContext
		if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) ||
			c.LivenessProbe == nil || c.ReadinessProbe == nil || c.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s may more than it has to: %+v", c.Name, s)
		}
		for _, port := range c.Ports {
			if port.ContainerPort == 8080 {
				t.Errorf("%s has the port that asks for no login", c.Name)
			}
		}
	}
	for _, m := range page.VolumeMounts {
		if m.Name != "hub" {
			t.Errorf("hub-ui reads the volume %s", m.Name)
		}
	}
	for _, name := range []string{"hub", "oidc"} {
		if !slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == name }) {
			t.Errorf("the volume %s is missing", name)
		}
	}
}

// TestUI_Flags verifies that hub-ui supports its flags, and that the proxy has the flags that make it safe.
func TestUI_Flags(t *testing.T) {
	_, page, proxy := uiOf(t, objects(t, Hub, HubNamespace, uiValues(t)))
	cmd := hubui.NewCommand()
	if err := cmd.ParseFlags(page.Args); err != nil {
		t.Fatalf("%q: %v", page.Args, err)
	}
	for name, want := range map[string]string{"address": "127.0.0.1", "port": "8080", "allowed-host": "[hub.example.com]", "hub-server": "https://kubernetes.default.svc",
		"hub-ca-file": "/etc/hub-ui/hub/ca.crt", "health-probe-bind-address": ":8081"} {
		if got := cmd.Flags().Lookup(name).Value.String(); got != want {
			t.Errorf("--%s is %s, not %s", name, got, want)
		}
	}
	for _, want := range []string{"--upstream=http://127.0.0.1:8080/", "--pass-authorization-header=true", "--pass-access-token=false", "--cookie-secure=true", "--cookie-httponly=true",
		"--cookie-samesite=lax", "--cookie-name=__Host-hub-ui", "--request-logging=false", "--proxy-websockets=false", "--oidc-issuer-url=https://login.example.com",
		"--client-id=hub", "--scope=openid email profile groups", "--email-domain=*", "--provider-ca-file=/etc/private-ca/ca.crt"} {
		if !slices.Contains(proxy.Args, want) {
			t.Errorf("oauth2-proxy lacks %s: %q", want, proxy.Args)
		}
	}
	for _, arg := range proxy.Args {
		if strings.HasPrefix(arg, "--skip-auth") || strings.HasPrefix(arg, "--client-secret=") || strings.HasPrefix(arg, "--cookie-secret=") || strings.HasPrefix(arg, "--skip-jwt-bearer-tokens") {
			t.Errorf("oauth2-proxy has %s", arg)
		}
	}
	if proxy.Image != "images.example.com/oauth2-proxy:v7.15.6" {
		t.Errorf("its image is %s", proxy.Image)
	}
}

// With a certificate, the proxy serves https, and what leads to it says so.
func TestUI_WithCertificate(t *testing.T) {
	values := uiValues(t)
	values["ui"].(map[string]any)["tlsSecretName"] = "hub-ui-tls"
	all := objects(t, Hub, HubNamespace, values)
	_, _, proxy := uiOf(t, all)
	if !slices.Contains(proxy.Args, "--https-address=0.0.0.0:4180") || !slices.Contains(proxy.Args, "--http-address=-") || slices.Contains(proxy.Args, "--reverse-proxy=true") ||
		proxy.ReadinessProbe.HTTPGet.Scheme != corev1.URISchemeHTTPS {
		t.Errorf("it serves by %q", proxy.Args)
	}
	for _, o := range all {
		text := string(must(o.MarshalJSON())(t))
		if o.GetName() == "hub-ui" && (o.GetKind() == "Service" && !strings.Contains(text, `"port":443`) || o.GetKind() == "Ingress" && !strings.Contains(text, `"port":{"name":"https"}`)) {
			t.Errorf("%s %s: %s", o.GetKind(), o.GetName(), text)
		}
	}
}

func TestUI_IsOffByDefault(t *testing.T) {
	for _, o := range objects(t, Hub, HubNamespace, nil) {
		if strings.Contains(string(must(o.MarshalJSON())(t)), "hub-ui") {
			t.Errorf("%s %s is there", o.GetKind(), o.GetName())
		}
	}
}
