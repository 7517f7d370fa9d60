// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver/csr"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// passport is a third driver, unknown to the others.
type passport struct{ every time.Duration }

func (passport) Name() string { return "passport" }
func (passport) Handles(c *clusterv1.ManagedCluster) bool {
	return c.Annotations["passport.example.com/number"] != ""
}
func (passport) Plan(c *clusterv1.ManagedCluster) (driver.Record, error) {
	return driver.Record(c.Annotations["passport.example.com/number"]), nil
}
func (passport) Grant(context.Context, string, driver.Record) error  { return nil }
func (passport) Revoke(context.Context, string, driver.Record) error { return nil }
func (p passport) CheckInterval() time.Duration                      { return p.every }
func (passport) AutoApproves(*clusterv1.ManagedCluster) bool         { return false }

// passports is the kind of the driver.
type passports struct{ office string }

func (*passports) Name() string                 { return "passport" }
func (p *passports) AddFlags(fs *pflag.FlagSet) { fs.StringVar(&p.office, "passport-office", "", "") }
func (*passports) Validate(bool) []error        { return nil }
func (*passports) Rights() []kit.Right          { return nil }
func (p *passports) New(_ context.Context, options driver.Options) (driver.Driver, error) {
	if p.office == "closed" {
		return nil, errors.New("it is closed")
	}
	return passport{every: options.CheckInterval}, nil
}

// withPassport adds the driver, as the main.go of another binary would.
func withPassport(o *Options) { o.Registration.Kinds = append(o.Registration.Kinds, &passports{}) }

func TestDrivers_CustomDriver(t *testing.T) {
	o := NewOptions()
	withPassport(o)
	set := o.Flags()
	args := []string{"--registration-drivers=passport,csr,passport", "--drift-check-interval=2h"}
	if err := set.FlagSet("registration").Parse(args); err != nil {
		t.Fatal(err)
	}
	o.Kubeconfig = "kubeconfig"
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	drivers, err := o.Registration.drivers(t.Context(), nil, nil)
	if err != nil || len(drivers) != 2 {
		t.Fatalf("%v, %v", drivers, err)
	}
	byCertificate := &clusterv1.ManagedCluster{}
	byPassport := &clusterv1.ManagedCluster{}
	byPassport.Annotations = map[string]string{"passport.example.com/number": "7"}
	for want, cluster := range map[string]*clusterv1.ManagedCluster{"passport": byPassport, "csr": byCertificate} {
		if driver, err := drivers.For(cluster); err != nil || driver.Name() != want {
			t.Errorf("%v, %v, want %s", driver, err, want)
		}
	}
	if interval := drivers.Named("passport").CheckInterval(); interval != 2*time.Hour {
		t.Errorf("checked every %s", interval)
	}
	if err := set.FlagSet("registration").Set("passport-office", "closed"); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Registration.drivers(t.Context(), nil, nil); err == nil || err.Error() != "registration driver passport: it is closed" {
		t.Errorf("error %v", err)
	}
}

func TestDrivers_DefaultToCSR(t *testing.T) {
	drivers, err := NewOptions().Registration.drivers(t.Context(), nil, nil)
	if err != nil || len(drivers) != 1 || drivers[0].Name() != csr.Name {
		t.Errorf("%v, %v", drivers, err)
	}
}

func TestDrivers_SpecificationSpelling(t *testing.T) {
	o := RegistrationOptions{Drivers: []string{" aws-irsa", "csr", "awsirsa", ""}}
	if got := o.enabled(); !slices.Equal(got, []string{"awsirsa", "csr"}) {
		t.Errorf("enabled %q", got)
	}
}

func TestValidate_RegistrationErrors(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"defaults":                       {},
		"no registration":                {args: []string{"--registration-drivers="}},
		"an unknown driver":              {args: []string{"--registration-drivers=csr,grpc"}, want: `--registration-drivers: unknown driver "grpc", use one of `},
		"a time below 0":                 {args: []string{"--leftover-ttl=-1h"}, want: "--leftover-ttl and --drift-check-interval must not be below 0"},
		"a tag without a value":          {args: []string{"--aws-resource-tags=team"}, want: `--aws-resource-tags: "team" is not of the form key=value`},
		"a tag twice":                    {args: []string{"--aws-resource-tags=a=1,a=2"}, want: `--aws-resource-tags: duplicate key "a"`},
		"agents' roles of no kind":       {args: []string{"--agent-roles=none"}, want: `--agent-roles must be shared or per-cluster, not "none"`},
		"a Service without a namespace":  {args: []string{"--hub-apiserver-service=hub-apiserver"}, want: `--hub-apiserver-service must be NAMESPACE/NAME of a Service, not "hub-apiserver"`},
		"a role for each cluster":        {args: []string{"--agent-roles=per-cluster", "--agents-list-csrs"}},
		"tags":                           {args: []string{"--aws-resource-tags=a=1,b=x=y"}},
		"patterns without their gate":    {args: []string{"--auto-approved-arn-patterns=.*"}, want: "--auto-approved-arn-patterns needs --feature-gates=ManagedClusterAutoApproval=true"},
		"auto approval without its gate": {args: []string{"--auto-approved-csr-identities=joiner"}, want: "--auto-approved-csr-identities needs --feature-gates=ManagedClusterAutoApproval=true"},
	} {
		t.Run(name, func(t *testing.T) {
			o := NewOptions()
			o.Kubeconfig = "kubeconfig"
			set := o.Flags()
			if err := set.FlagSet("registration").Parse(test.args); err != nil {
				t.Fatal(err)
			}
			err := o.Validate()
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n")):
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
	o := NewOptions()
	if o.FeatureGate.Enabled(ManagedClusterAutoApproval) {
		t.Error("clusters are accepted without an admin by default")
	}
}

// The hub may be away when the process starts: the process waits, and does not end.
func TestManager_StartsWithoutHub(t *testing.T) {
	o := NewOptions()
	o.HealthAddress, o.Metrics.Address, o.LeaderElection.Enabled = "0", "0", false
	// Nothing listens on this port.
	if _, err := ctrlmanager.New(&rest.Config{Host: "https://127.0.0.1:1"}, o.managerOptions()); err != nil {
		t.Error(err)
	}
	mapper, err := newMapper(&rest.Config{Host: "https://127.0.0.1:1"}, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	scheme := o.managerOptions().Scheme
	for obj := range ofClusters() {
		kinds, _, err := scheme.ObjectKinds(obj)
		if err != nil {
			t.Fatal(err)
		}
		mapping, err := mapper.RESTMapping(kinds[0].GroupKind(), kinds[0].Version)
		if err != nil || mapping.Resource.Resource != strings.ToLower(kinds[0].Kind)+"s" {
			t.Errorf("%s: %v, %v", kinds[0].Kind, mapping, err)
		}
	}
	// A cache of one namespace needs this mapping before it lists.
	if _, err := mapper.RESTMapping(schema.GroupKind{Kind: "ConfigMapList"}, "v1"); err != nil {
		t.Error(err)
	}
}

// The manifests grant what is needed to grant permissions to others, and no further escalation. Policies limit their use.
func TestManifests_GrantNoEscalation(t *testing.T) {
	file, err := os.Open("../../../artifacts/deploy/base/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	found := map[string]bool{}
	for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		role := &rbacv1.ClusterRole{}
		if decoder.Decode(role) != nil {
			break
		}
		if role.Kind != "ClusterRole" || role.Name == "clusterhub:cluster-namespace-inspector" {
			continue
		}
		found[role.Name] = true
		for _, rule := range role.Rules {
			for _, all := range [][]string{rule.Verbs, rule.APIGroups, rule.Resources} {
				if slices.Contains(all, "*") {
					t.Errorf("%s: a right to everything: %v", role.Name, rule)
				}
			}
			if slices.Contains(rule.Verbs, "escalate") || slices.Contains(rule.Verbs, "impersonate") ||
				slices.Contains(rule.Resources, "secrets") && role.Name != "clusterhub:cluster-provider-secrets" ||
				slices.Contains(rule.Verbs, "bind") && len(rule.ResourceNames) == 0 {
				t.Errorf("%s: more than it needs: %v", role.Name, rule)
			}
			if role.Name == "clusterhub:hub-controller-manager" && (slices.Contains(rule.Verbs, "approve") ||
				slices.Contains(rule.Resources, "managedclusters/accept") ||
				slices.Contains(rule.Resources, "managedclusters") && slices.Contains(rule.Verbs, "delete")) {
				t.Errorf("%s: what a component of its own has: %v", role.Name, rule)
			}
		}
	}
	if !found["clusterhub:hub-controller-manager"] || !found["clusterhub:hub-certificate-approver"] {
		t.Errorf("there are only %v", found)
	}
}

// A policy has no effect on users that it does not match: each is bound, denies, and names an existing ServiceAccount, or both groups of all
// agents.
func TestManifests_PoliciesAreEnforced(t *testing.T) {
	read := func(file string) string {
		data, err := os.ReadFile("../../../artifacts/deploy/base/" + file)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	accounts, policies, bound := map[string]bool{registration.BootstrapServiceAccount: true}, map[string]bool{}, map[string]bool{}
	for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(read("rbac.yaml")), 4096); ; {
		account := &corev1.ServiceAccount{}
		if decoder.Decode(account) != nil {
			break
		}
		if account.Kind == "ServiceAccount" {
			accounts["system:serviceaccount:"+account.Namespace+":"+account.Name] = true
		}
	}
	agents := 0
	named := regexp.MustCompile(`system:serviceaccount:[a-z-]+:[a-z-]+`)
	for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(read("policies.yaml")), 4096); ; {
		raw := runtime.RawExtension{}
		if decoder.Decode(&raw) != nil {
			break
		}
		policy, binding := &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}
		if err := errors.Join(json.Unmarshal(raw.Raw, policy), json.Unmarshal(raw.Raw, binding)); err != nil {
			t.Fatal(err)
		}
		if policy.Kind == "ValidatingAdmissionPolicyBinding" {
			bound[binding.Spec.PolicyName] = slices.Equal(binding.Spec.ValidationActions, []admissionv1.ValidationAction{admissionv1.Deny}) &&
				binding.Spec.MatchResources == nil
			continue
		}
		policies[policy.Name] = true
		if policy.Spec.FailurePolicy == nil || *policy.Spec.FailurePolicy != admissionv1.Fail {
			t.Errorf("%s lets through what it cannot judge", policy.Name)
		}
		if len(policy.Spec.MatchConditions) != 1 {
			t.Fatalf("%s has %d conditions, want one, by the user", policy.Name, len(policy.Spec.MatchConditions))
		}
		condition := policy.Spec.MatchConditions[0].Expression
		users := named.FindAllString(condition, -1)
		ofAgents := strings.Contains(condition, "'"+registration.ManagedClustersGroup+"'") &&
			strings.Contains(condition, "'"+registration.AWSManagedClustersGroup+"'")
		if len(users) == 0 && !ofAgents {
			t.Errorf("%s names no ServiceAccount, nor the agents of all clusters", policy.Name)
		}
		if ofAgents {
			agents++
		}
		for _, user := range users {
			if !accounts[user] {
				t.Errorf("%s holds %s, which there is not", policy.Name, user)
			}
		}
	}
	if len(policies) == 0 || agents != 4 {
		t.Errorf("there are %d policies, %d of them about agents", len(policies), agents)
	}
	for policy := range policies {
		if !bound[policy] {
			t.Errorf("%s does not deny", policy)
		}
	}
}

// The flags must not accept what the policy on hub-certificate-approver refuses: it would wait forever.
func TestValidate_RejectsUsersOutsideOfPolicy(t *testing.T) {
	for user, ok := range map[string]bool{
		"joiner": true, "system:bootstrap:abcdef": true, "system:serviceaccount:open-cluster-management:agent-registration-bootstrap": true,
		"system:serviceaccount:kube-system:joiner": false, "system:serviceaccount:clusterhub-system:hub-controller-manager": false,
		"system:admin": false, "system:node:a": false,
	} {
		o := newRegistrationOptions()
		o.Certificates.BootstrapUsers = []string{user}
		if got := len(o.validate(true)) == 0; got != ok {
			t.Errorf("--bootstrap-identities=%s: valid %t, want %t", user, got, ok)
		}
		o.Certificates.BootstrapUsers, o.csr.AutoApproved = nil, []string{user}
		if got := len(o.validate(true)) == 0; got != ok {
			t.Errorf("--auto-approved-csr-identities=%s: valid %t, want %t", user, got, ok)
		}
	}
}
