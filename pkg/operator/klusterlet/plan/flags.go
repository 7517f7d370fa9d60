// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"slices"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	// minCertificate is the shortest lifetime of a certificate, in seconds, that Kubernetes signs.
	minCertificate = 600
	// rawFeedback is the only feature gate of the part that applies works.
	rawFeedback = "RawFeedbackJsonString"
)

// number is a number in the spec that becomes a flag of the agent. 0 stands for the agent's default.
type number struct {
	field, flag string
	value       int32
	// least is the smallest value of the flag, and usual is the agent's default. A flag with the default is left out: an agent of a different
	// version, whose image the Klusterlet names, may not have the flag.
	least, usual int32
}

func (n number) args() []string {
	if n.value < n.least || n.value == n.usual {
		return nil
	}
	return []string{fmt.Sprintf("--%s=%d", n.flag, n.value)}
}

// Ignored reports a number with which the agent would not start.
func (n number) ignored() []string {
	if n.value == 0 || n.value >= n.least {
		return nil
	}
	return []string{fmt.Sprintf("%s is ignored: it must be 0 or at least %d, not %d", n.field, n.least, n.value)}
}

// registrationNumbers returns the numbers of the registration, and workNumbers those of works.
func (k AgentSpec) registrationNumbers() []number {
	const at = "spec.registrationConfiguration."
	r := k.Spec.RegistrationConfiguration
	if r == nil {
		return nil
	}
	all := []number{
		{at + "kubeAPIQPS", "kube-api-qps", r.KubeAPIQPS, 1, registration.DefaultAgentQPS},
		{at + "kubeAPIBurst", "kube-api-burst", r.KubeAPIBurst, 1, registration.DefaultAgentBurst},
	}
	if k.byCertificate() {
		all = append(all, number{at + "clientCertExpirationSeconds", "client-cert-expiration-seconds", r.ClientCertExpirationSeconds, minCertificate, 0})
	}
	return all
}

func (k AgentSpec) workNumbers() []number {
	const at = "spec.workConfiguration."
	w := k.Spec.WorkConfiguration
	if w == nil {
		return nil
	}
	return []number{
		{at + "kubeAPIQPS", "works-kube-api-qps", w.KubeAPIQPS, 1, registration.DefaultAgentQPS},
		{at + "kubeAPIBurst", "works-kube-api-burst", w.KubeAPIBurst, 1, registration.DefaultAgentBurst},
		{at + "hubKubeAPIQPS", "works-hub-kube-api-qps", w.HubKubeAPIQPS, 1, registration.DefaultAgentQPS},
		{at + "hubKubeAPIBurst", "works-hub-kube-api-burst", w.HubKubeAPIBurst, 1, registration.DefaultAgentBurst},
	}
}

// byCertificate reports whether the agent's identity is a client certificate.
func (k AgentSpec) byCertificate() bool {
	r := k.Spec.RegistrationConfiguration
	return r == nil || r.RegistrationDriver.AuthType == "" || r.RegistrationDriver.AuthType == operatorv1.CSRAuthType
}

func (k AgentSpec) registrationArgs() (args []string) {
	flag := func(name, value string) {
		if value != "" {
			args = append(args, "--"+name+"="+value)
		}
	}
	flag("cluster-name", k.Spec.ClusterName)
	if all, _ := k.addresses(); len(all) == 1 && len(all[0].CABundle) == 0 {
		flag("cluster-server-url", all[0].URL) // agents of other versions have this flag, too
	} else if text, err := registration.FormatAddresses(all); len(all) > 0 && err == nil {
		flag("cluster-addresses", text)
	}
	r := k.Spec.RegistrationConfiguration
	if r == nil {
		return args
	}
	annotations, _ := clusterAnnotations(r)
	labels, _ := clusterLabels(r)
	flag("cluster-annotations", pairs(annotations))
	flag("cluster-labels", pairs(labels))
	if c := r.ClusterClaimConfiguration; c != nil {
		if c.MaxCustomClusterClaims >= 0 {
			flag("max-custom-cluster-claims", fmt.Sprint(c.MaxCustomClusterClaims))
		}
		flag("reserved-cluster-claim-suffixes", deploy.ListFlag(c.ReservedClusterClaimSuffixes))
	}
	flag("registration-auth", r.RegistrationDriver.AuthType)
	if aws := r.RegistrationDriver.AwsIrsa; aws != nil && r.RegistrationDriver.AuthType == operatorv1.AwsIrsaAuthType {
		flag("hub-cluster-arn", aws.HubClusterArn)
		flag("managed-cluster-arn", aws.ManagedClusterArn)
	}
	for _, n := range slices.Concat(k.registrationNumbers(), k.hubNumbers()) {
		args = append(args, n.args()...)
	}
	return args
}

// addresses returns the addresses of the managed cluster that the agent accepts, and why it rejects the others.
func (k AgentSpec) addresses() (given []clusterv1.ClientConfig, refused []string) {
	for _, u := range k.Spec.ExternalServerURLs {
		address := clusterv1.ClientConfig{URL: u.URL, CABundle: u.CABundle}
		err := registration.CheckAddress(address)
		if err == nil && len(given) == registration.MaxAddresses {
			err = fmt.Errorf("%q is more than the first %d", u.URL, registration.MaxAddresses)
		}
		if err == nil {
			_, err = registration.FormatAddresses(append(given[:len(given):len(given)], address))
		}
		if err != nil {
			refused = append(refused, err.Error())
			continue
		}
		given = append(given, address)
	}
	return given, refused
}

// clusterAnnotations returns the annotations that the agent accepts, and why it rejects the others: it would not start with them.
func clusterAnnotations(r *operatorv1.RegistrationConfiguration) (given map[string]string, refused []string) {
	given = map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(r.ClusterAnnotations)) {
		if err := registration.CheckClusterAnnotation(key); err != nil {
			refused = append(refused, err.Error())
			continue
		}
		given[key] = r.ClusterAnnotations[key]
	}
	return given, refused
}

// clusterLabels returns the labels that the agent accepts, and why it rejects the others.
func clusterLabels(r *operatorv1.RegistrationConfiguration) (given map[string]string, refused []string) {
	given = map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(r.ClusterLabels)) {
		given[key] = r.ClusterLabels[key]
		if errs := registration.CheckClusterLabels(map[string]string{key: given[key]}); len(errs) > 0 {
			delete(given, key)
			refused = append(refused, errs[0].Error())
		} else if len(given) > registration.MaxClusterLabels {
			delete(given, key)
			refused = append(refused, fmt.Sprintf("%q is more than the first %d", key, registration.MaxClusterLabels))
		}
	}
	return given, refused
}

func (k AgentSpec) workArgs() (args []string) {
	w := k.Spec.WorkConfiguration
	if w == nil {
		return nil
	}
	if w.AppliedManifestWorkEvictionGracePeriod != nil {
		args = append(args, "--appliedmanifestwork-eviction-grace-period="+w.AppliedManifestWorkEvictionGracePeriod.Duration.String())
	}
	for _, gate := range w.FeatureGates {
		if gate.Feature == rawFeedback {
			args = append(args, fmt.Sprintf("--feature-gates=%s=%t", gate.Feature, gate.Mode == operatorv1.FeatureGateModeTypeEnable))
		}
	}
	for _, n := range k.workNumbers() {
		args = append(args, n.args()...)
	}
	return args
}

// pairs formats a map for a flag, in a stable order.
func pairs(m map[string]string) string {
	all := make([]string, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		all = append(all, key+"="+m[key])
	}
	return deploy.ListFlag(all)
}
