// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hzn

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
)

// The texts that several kinds use.
const (
	noSecretBinding = "the hub has no secrets manager: put Secrets into the namespace that is deployed to"
	noNodeHealth    = "the ManagedCluster of a node defines when it is unavailable, by spec.leaseDurationSeconds"
	noSignature     = "the hub does not check signatures of Open Horizon"
	noUpgradePolicy = "what is new is deployed at once"
)

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind}
}

func (o *object) node(name string) *v1alpha1.EdgeNode {
	n := &v1alpha1.EdgeNode{TypeMeta: typeMeta("EdgeNode")}
	n.Name = o.name(name, o.at)
	if strings.Contains(n.Name, ".") {
		o.fail(join(o.at, "name"), "%q cannot be the name of a node, which must have the name of a ManagedCluster: name the ManagedCluster", name)
	}
	n.Spec = v1alpha1.EdgeNodeSpec{
		NodeType: v1alpha1.NodeType(o.text("nodeType")), Label: o.text("label"), Description: o.text("description"), Policy: o.policyPart(),
	}
	n.Spec.Deployment, n.Spec.Management = o.overlay("deployment"), o.overlay("management")
	if pattern := o.text("pattern"); pattern != "" {
		org, name, ok := strings.Cut(pattern, "/")
		if !ok {
			org, name = "", pattern
		}
		n.Spec.Pattern = o.namespace(org, join(o.at, "pattern")) + "/" + objectName(name)
	}
	for _, fact := range []string{"arch", "clusterNamespace", "isNamespaceScoped", "NamespaceScoped"} {
		o.skip(fact, "the agent of the node reports it")
	}
	o.skip("token", "an agent proves who it is by its own identity on the hub, not by a token: treat the file as a secret")
	o.skip("userInput", "variables are set by policies and patterns")
	o.skip("registeredServices", "the agent gets its services from the hub")
	o.skip("ha_group", "the hub knows no groups of nodes in which one at a time is changed")
	o.drop("name", "owner", "msgEndPoint", "softwareVersions", "lastHeartbeat", "publicKey", "heartbeatIntervals", "lastUpdated")
	o.done()
	return n
}

func (o *object) overlay(name string) *v1alpha1.Policy {
	inner := o.inner(name)
	if inner == nil {
		return nil
	}
	policy := inner.policyPart()
	inner.done()
	return &policy
}

func (o *object) service(listed string) *v1alpha1.EdgeService {
	org := o.text("org")
	if org == "" {
		org = listed
	}
	s := &v1alpha1.EdgeService{TypeMeta: typeMeta("EdgeService")}
	s.Spec = v1alpha1.EdgeServiceSpec{
		Label: o.text("label"), Description: o.text("description"), Documentation: o.text("documentation"), Public: o.boolean("public"),
		URL: o.text("url"), Version: o.text("version"), Arch: o.text("arch"),
	}
	s.Namespace, s.Name = o.namespace(org, join(o.at, "org")), edge.ServiceName(s.Spec.URL, s.Spec.Version, s.Spec.Arch)
	for _, part := range []struct{ name, value string }{{"url", s.Spec.URL}, {"version", s.Spec.Version}, {"arch", s.Spec.Arch}} {
		if part.value == "" {
			o.fail(join(o.at, part.name), "must be there")
		}
	}
	// The documentation of hzn uses one name, and its files the other.
	for _, name := range []string{"userInput", "userInputs"} {
		for _, v := range o.list(name) {
			s.Spec.UserInput = append(s.Spec.UserInput, v.variable())
		}
	}
	if values := o.stringified("deployment"); values != nil {
		data, err := json.Marshal(values)
		if err != nil {
			o.fail(join(o.at, "deployment"), "%v", err)
		}
		s.Spec.Deployment = &runtime.RawExtension{Raw: data}
		o.note(join(o.at, "deployment"), "is kept, but nothing is delivered to devices")
	}
	if values := o.stringified("clusterDeployment"); values != nil {
		inner := &object{o.reader, join(o.at, "clusterDeployment"), values}
		s.Spec.ClusterDeployment = &v1alpha1.ClusterDeployment{OperatorYamlArchive: inner.archive()}
		inner.skip("metadata", "the hub finds the namespace in the archive itself")
		inner.skip("secrets", noSecretBinding)
		inner.skip("mmsPVC", "the hub manages no models")
		inner.done()
	}
	o.skip("requiredServices", "services of clusters require no others: put what belongs together into one archive, or several services into a pattern")
	if sharable := o.text("sharable"); sharable != "" && sharable != "multiple" {
		o.note(join(o.at, "sharable"), "is ignored: each deployment of a service has its own objects")
	}
	o.skip("deploymentSignature", noSignature)
	o.skip("clusterDeploymentSignature", noSignature)
	o.drop("owner", "matchHardware", "lastUpdated")
	o.done()
	return s
}

func (o *object) variable() v1alpha1.Variable {
	v := v1alpha1.Variable{Name: o.text("name"), Label: o.text("label"), Type: o.propertyType()}
	switch value := o.take("defaultValue").(type) {
	case nil:
	case string:
		v.DefaultValue = &value
	default:
		data, err := json.Marshal(value)
		if err != nil {
			o.fail(join(o.at, "defaultValue"), "%v", err)
		}
		text := string(data)
		v.DefaultValue = &text
		o.note(join(o.at, "defaultValue"), "is written as text")
	}
	o.done()
	return v
}

// stringified returns an object, or one that is encoded as JSON in a text; nil if it does not exist.
func (o *object) stringified(name string) map[string]any {
	switch value := o.take(name).(type) {
	case nil:
	case map[string]any:
		if len(value) > 0 {
			return value
		}
	case string:
		if value == "" {
			return nil
		}
		var inner map[string]any
		if err := utiljson.Unmarshal([]byte(value), &inner); err != nil {
			o.fail(join(o.at, name), "must be an object, or a string with JSON of one")
		} else if len(inner) > 0 {
			return inner
		}
	default:
		o.fail(join(o.at, name), "must be an object, or a string with JSON of one")
	}
	return nil
}

// gzipped is the beginning of a tar.gz.
const gzipped = "\x1f\x8b"

// archive returns the archive in the field, or in the file that it names.
func (o *object) archive() []byte {
	at, text := join(o.at, "operatorYamlArchive"), o.text("operatorYamlArchive")
	if text == "" {
		o.fail(at, "must be the archive in base64, or the name of a file with it")
		return nil
	}
	if data, err := base64.StdEncoding.DecodeString(text); err == nil && strings.HasPrefix(string(data), gzipped) {
		return data
	}
	if o.options.Archive == nil {
		o.fail(at, "is not a tar.gz in base64, and files are not read here")
		return nil
	}
	data, err := o.options.Archive(text)
	if err != nil {
		o.fail(at, "cannot be read: %v", err)
	} else if !strings.HasPrefix(string(data), gzipped) {
		o.fail(at, "is neither a tar.gz in base64, nor the name of a file that has a tar.gz")
		return nil
	}
	return data
}

func (o *object) policy(org, name string) *v1alpha1.DeploymentPolicy {
	p := &v1alpha1.DeploymentPolicy{TypeMeta: typeMeta(v1alpha1.KindDeploymentPolicy)}
	p.Namespace, p.Name = o.namespace(org, o.at), o.name(name, o.at)
	p.Spec = v1alpha1.DeploymentPolicySpec{
		Label: o.text("label"), Description: o.text("description"), Policy: o.policyPart(), UserInput: o.inputs(),
	}
	if s := o.inner("service"); s == nil {
		o.fail(join(o.at, "service"), "must be there")
	} else {
		p.Spec.Service = v1alpha1.PolicyService{
			Name: s.text("name"), Org: s.org("org"), Arch: s.text("arch"), ClusterNamespace: s.text("clusterNamespace"), ServiceVersions: s.versions(),
		}
		s.skip("nodeHealth", noNodeHealth)
		s.done()
	}
	o.skip("secretBinding", noSecretBinding)
	o.drop("owner", "created", "lastUpdated")
	o.done()
	return p
}

func (o *object) pattern(org, name string) *v1alpha1.DeploymentPattern {
	p := &v1alpha1.DeploymentPattern{TypeMeta: typeMeta(v1alpha1.KindDeploymentPattern)}
	if own := o.text("name"); name == "" {
		name = own
	}
	if own := o.text("org"); org == "" {
		org = own
	}
	p.Namespace, p.Name = o.namespace(org, join(o.at, "org")), o.name(name, o.at)
	p.Spec = v1alpha1.DeploymentPatternSpec{
		Label: o.text("label"), Description: o.text("description"), ClusterNamespace: o.text("clusterNamespace"), UserInput: o.inputs(),
	}
	for _, s := range o.list("services") {
		p.Spec.Services = append(p.Spec.Services, v1alpha1.PatternService{
			ServiceUrl: s.text("serviceUrl"), ServiceOrgid: s.org("serviceOrgid"), ServiceArch: s.text("serviceArch"), ServiceVersions: s.versions(),
		})
		s.skip("agreementLess", "the hub makes no agreements: all services of a pattern are deployed")
		s.skip("dataVerification", "the hub does not look at the data of services")
		s.skip("nodeHealth", noNodeHealth)
		s.done()
	}
	o.skip("public", "nodes may have the pattern if one of their sets is bound to its namespace")
	o.skip("secretBinding", noSecretBinding)
	o.drop("owner", "agreementProtocols", "lastUpdated")
	o.done()
	return p
}

// org returns the namespace of the organization in a field; empty if the field is.
func (o *object) org(name string) string {
	org := o.text(name)
	if org == "" {
		return ""
	}
	return o.namespace(org, join(o.at, name))
}

func (o *object) versions() []v1alpha1.ServiceVersion {
	var versions []v1alpha1.ServiceVersion
	for _, v := range o.list("serviceVersions") {
		version := v1alpha1.ServiceVersion{Version: v.text("version")}
		if p := v.inner("priority"); p != nil {
			priority := v1alpha1.Priority{
				PriorityValue: p.number("priority_value"), Retries: p.number("retries"),
				RetryDurations: p.number("retry_durations"), VerifiedDurations: p.number("verified_durations"),
			}
			p.done()
			// A template of hzn has zeros where nothing is set.
			if priority != (v1alpha1.Priority{}) {
				version.Priority = &priority
			}
		}
		v.skip("upgradePolicy", noUpgradePolicy)
		v.skip("deployment_overrides", "nothing is delivered to devices")
		v.skip("deployment_overrides_signature", noSignature)
		v.done()
		if i := slices.IndexFunc(versions, func(other v1alpha1.ServiceVersion) bool { return other.Version == version.Version }); i >= 0 {
			o.note(v.at, "is ignored: the version is in the list more than once, and the lowest priority_value counts")
			if before(version.Priority, versions[i].Priority) {
				versions[i].Priority = version.Priority
			}
			continue
		}
		versions = append(versions, version)
	}
	return versions
}

// before reports whether a version with the first priority is tried before one with the second. Versions without a priority are last.
func before(a, b *v1alpha1.Priority) bool {
	return a != nil && (b == nil || a.PriorityValue < b.PriorityValue)
}

func (o *object) inputs() []v1alpha1.ServiceInput {
	var inputs []v1alpha1.ServiceInput
	for _, in := range o.list("userInput") {
		input := v1alpha1.ServiceInput{
			ServiceOrgid: in.org("serviceOrgid"), ServiceUrl: in.text("serviceUrl"), ServiceArch: in.text("serviceArch"),
			ServiceVersionRange: in.text("serviceVersionRange"),
		}
		for _, v := range in.list("inputs") {
			input.Inputs = append(input.Inputs, v1alpha1.Input{Name: v.text("name"), Value: v.value("value")})
			v.done()
		}
		in.done()
		inputs = append(inputs, input)
	}
	return inputs
}
