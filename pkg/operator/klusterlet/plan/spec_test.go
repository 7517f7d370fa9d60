// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/cert"

	"github.com/clusterhub/clusterhub/pkg/agent"
	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/operator/operatortest"
)

// certificate is a certificate in PEM.
var certificate = func() string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	own, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "test"}, key)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: own.Raw}))
}()

// started returns the flags of the agent, as parsed by its first pod. Every pod must start with its flags.
func started(t *testing.T, k *operatorv1.Klusterlet) (first *agent.Options) {
	t.Helper()
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	p, err := New(k, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range p.Pods {
		containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "template", "spec", "containers")
		args, _, _ := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
		o, flags := agent.NewOptions(), pflag.NewFlagSet("", pflag.ContinueOnError)
		for _, set := range o.Flags().FlagSets {
			flags.AddFlagSet(set)
		}
		if err := flags.Parse(args); err != nil {
			t.Fatalf("%s does not start with %q: %v", pod.GetName(), args, err)
		}
		if err := o.Validate(); err != nil {
			t.Fatalf("%s does not start with %q: %v", pod.GetName(), args, err)
		}
		if first == nil {
			first = o
		}
	}
	return first
}

// TestFields_InvalidValuesDoNotPreventStart: pods start whatever a user writes: values that the agent would reject are not passed to it, and are
// reported. A definition of a different version may allow what this one rejects.
func TestFields_InvalidValuesDoNotPreventStart(t *testing.T) {
	many := map[string]string{}
	for i := range 20 {
		many[fmt.Sprintf("l%02d", i)] = "v"
	}
	for says, change := range map[string]func(*operatorv1.KlusterletSpec, *operatorv1.RegistrationConfiguration){
		`clusterAnnotations: these have no effect: "example.com/a" must begin with ` + ofAgents: func(_ *operatorv1.KlusterletSpec, r *operatorv1.RegistrationConfiguration) {
			r.ClusterAnnotations = map[string]string{ofAgents + "a": "1", "example.com/a": "2"}
		},
		`"agent.open-cluster-management.io" must begin with`: func(_ *operatorv1.KlusterletSpec, r *operatorv1.RegistrationConfiguration) {
			r.ClusterAnnotations = map[string]string{ofAgents + "a": "1", "agent.open-cluster-management.io": "2"}
		},
		`is not the name of an annotation`: func(_ *operatorv1.KlusterletSpec, r *operatorv1.RegistrationConfiguration) {
			r.ClusterAnnotations = map[string]string{ofAgents + "a": "1", ofAgents + `b=c,"--x`: "2", ofAgents: "3", ofAgents + "b/c": "4"}
		},
		`clusterLabels: these have no effect: "a b" is not a label key`: func(_ *operatorv1.KlusterletSpec, r *operatorv1.RegistrationConfiguration) {
			r.ClusterLabels = map[string]string{"l00": "v", "a b": "v"}
		},
		`the value of b: `: func(_ *operatorv1.KlusterletSpec, r *operatorv1.RegistrationConfiguration) {
			r.ClusterLabels = map[string]string{"l00": "v", "b": "v,c=d"}
		},
		`"l16" is more than the first 16`: func(_ *operatorv1.KlusterletSpec, r *operatorv1.RegistrationConfiguration) { r.ClusterLabels = many },
		`spec.externalServerURLs: these are not reported to the hub: "http://c.example.com" must be an https URL`: func(s *operatorv1.KlusterletSpec, _ *operatorv1.RegistrationConfiguration) {
			s.ExternalServerURLs = []operatorv1.ServerURL{{URL: "http://c.example.com"}}
		},
	} {
		for _, mode := range operatortest.Modes {
			k := &operatorv1.Klusterlet{}
			k.Name, k.Spec.DeployOption.Mode = "k", mode
			k.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{}
			change(&k.Spec, k.Spec.RegistrationConfiguration)
			if ignored := strings.Join(AgentSpec{k}.Ignored(), "; "); !strings.Contains(ignored, says) {
				t.Errorf("%s: it is said %q, want %q", mode, ignored, says)
			}
			for key, value := range started(t, k).ClusterAnnotations {
				if key != ofAgents+"a" || value != "1" {
					t.Errorf("%s: the agent is told to set the annotation %s=%s", mode, key, value)
				}
			}
			// Valid values beside them are passed.
			args := strings.Join(AgentSpec{k}.registrationArgs(), " ")
			if r := k.Spec.RegistrationConfiguration; len(r.ClusterAnnotations) > 0 != strings.Contains(args, "--cluster-annotations="+ofAgents+"a=1") ||
				len(r.ClusterLabels) > 0 != strings.Contains(args, "--cluster-labels=l00=v") {
				t.Errorf("%s: the flags are %s", mode, args)
			}
		}
	}
}

// TestPlan_RejectsInvalid: a spec is rejected if no agent could start with it.
func TestPlan_RejectsInvalid(t *testing.T) {
	ofAWS := func(aws *operatorv1.AwsIrsa) func(*operatorv1.KlusterletSpec) {
		return func(s *operatorv1.KlusterletSpec) {
			s.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{
				RegistrationDriver: operatorv1.RegistrationDriver{AuthType: operatorv1.AwsIrsaAuthType, AwsIrsa: aws}}
		}
	}
	for says, change := range map[string]func(*operatorv1.KlusterletSpec){
		"spec.clusterName: no cluster can be accepted":            func(s *operatorv1.KlusterletSpec) { s.ClusterName = "managed-clusters" },
		"spec.clusterName must be a DNS label":                    func(s *operatorv1.KlusterletSpec) { s.ClusterName = "a.b" },
		"registrationDriver.awsIrsa must be there":                ofAWS(nil),
		"awsIrsa.hubClusterArn: \"x\" is not the ARN":             ofAWS(&operatorv1.AwsIrsa{HubClusterArn: "x", ManagedClusterArn: arn}),
		"awsIrsa.managedClusterArn: \"\" is not the ARN":          ofAWS(&operatorv1.AwsIrsa{HubClusterArn: arn}),
		"awsIrsa.managedClusterArn: the cluster is in the AWS pa": ofAWS(&operatorv1.AwsIrsa{HubClusterArn: arn, ManagedClusterArn: "arn:aws-cn:eks:cn-north-1:123456789012:cluster/c"}),
	} {
		for _, mode := range operatortest.Modes {
			k := &operatorv1.Klusterlet{}
			k.Name, k.Spec.DeployOption.Mode = "k", mode
			change(&k.Spec)
			if _, err := New(k, ""); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v, want %q", mode, err, says)
			}
		}
	}
}

// TestPlan_AWSRole: on the managed cluster, each part assumes the role of that cluster. Pods on another cluster do not.
func TestPlan_AWSRole(t *testing.T) {
	for _, mode := range operatortest.Modes {
		k := &operatorv1.Klusterlet{}
		k.Name, k.Spec.DeployOption.Mode = "k", mode
		k.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{RegistrationDriver: operatorv1.RegistrationDriver{AuthType: operatorv1.AwsIrsaAuthType,
			AwsIrsa: &operatorv1.AwsIrsa{HubClusterArn: "arn:aws:eks:us-west-2:123456789012:cluster/hub-cluster1",
				ManagedClusterArn: "arn:aws:eks:us-west-2:123456789012:cluster/managed-cluster1"}}}
		p, err := New(k, "")
		if err != nil {
			t.Fatal(err)
		}
		want := "arn:aws:iam::123456789012:role/ocm-managed-cluster-7f8141296c75f2871e3d030f85c35692"
		if k.IsDetached() {
			want = ""
		}
		for _, o := range slices.Concat(p.Managed, p.Management) {
			if got := o.GetAnnotations()["eks.amazonaws.com/role-arn"]; o.GetKind() == "ServiceAccount" && got != want {
				t.Errorf("%s: the role of %s is %q, want %q", mode, o.GetName(), got, want)
			}
		}
	}
}

func TestPlan_FlagsOfSpec(t *testing.T) {
	k := &operatorv1.Klusterlet{}
	k.Name, k.Spec.ClusterName, k.Spec.DeployOption.Mode = "k", "c", operatorv1.InstallModeHosted
	k.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{
		ClusterAnnotations: map[string]string{"agent.open-cluster-management.io/b": "x,--y=1", "agent.open-cluster-management.io/a": "1"},
		ClusterLabels:      map[string]string{"l": "v"},
		RegistrationDriver: operatorv1.RegistrationDriver{AuthType: "csr"},
	}
	k.Spec.NodePlacement.Tolerations = []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists, TolerationSeconds: new(int64(5))}}
	k.Spec.ResourceRequirement = &operatorv1.ResourceRequirement{Type: operatorv1.ResourceQosClassBestEffort}
	want := []string{"--cluster-name=c", `--cluster-annotations=agent.open-cluster-management.io/a=1,"agent.open-cluster-management.io/b=x,--y=1"`,
		"--cluster-labels=l=v", "--registration-auth=csr"}
	if got := (AgentSpec{k}).registrationArgs(); !slices.Equal(got, want) {
		t.Errorf("the flags are %q, want %q", got, want)
	}
	p, err := New(k, "i:1")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range p.Pods {
		d := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, d); err != nil {
			t.Fatal(err)
		}
		pod := d.Spec.Template.Spec
		if len(pod.Tolerations) != 1 || *pod.Tolerations[0].TolerationSeconds != 5 || len(pod.Containers[0].Resources.Limits) > 0 || pod.Containers[0].Image != "i:1" {
			t.Errorf("%s has %+v", d.Name, pod)
		}
	}
	for name, change := range map[string]func(*operatorv1.Klusterlet){
		"a long name":       func(k *operatorv1.Klusterlet) { k.Name = strings.Repeat("a", 41) },
		"the cluster's own": func(k *operatorv1.Klusterlet) { k.Name = "kube-system" },
		"no label":          func(k *operatorv1.Klusterlet) { k.Name = "a.b" },
		"the agent's own": func(k *operatorv1.Klusterlet) {
			k.Spec.Clusterhub = &operatorv1.KlusterletClusterhub{Works: operatorv1.KlusterletWorks{Role: "admin", Namespaces: []string{k.ManagedNamespace()}}}
		},
		"too long, detached": func(k *operatorv1.Klusterlet) {
			k.Name, k.Spec.DeployOption.Mode = strings.Repeat("a", 34), operatorv1.InstallModeDetached
		},
	} {
		k := k.DeepCopy()
		change(k)
		if _, err := New(k, ""); err == nil {
			t.Errorf("%s: it has a plan", name)
		}
	}
}
