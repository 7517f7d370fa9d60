// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterscheduler

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/controllers/access/accesspolicy"
)

// Scope is where the scheduler looks for clusters for a request.
type Scope string

// Strategy is how one of several clusters is chosen for a request.
type Strategy string

const (
	// ScopeCluster also looks in other namespaces that are trusted for the purpose.
	ScopeCluster Scope = "Cluster"
	// ScopeNamespaced looks only in the namespace in which a new cluster would be created.
	ScopeNamespaced Scope = "Namespaced"

	// StrategyBalanced chooses the cluster with the fewest requests.
	StrategyBalanced Strategy = "Balanced"
	// StrategyRandom chooses a random cluster.
	StrategyRandom Strategy = "Random"
	// StrategySimple chooses the first cluster by namespace and name.
	StrategySimple Strategy = "Simple"

	everyNamespace = "*"
)

// Config is the block "scheduler" of the configuration. It has the form that openMCP's operator uses, with a policy added.
type Config struct {
	// Scope defaults to Cluster.
	Scope Scope `json:"scope,omitempty"`
	// Strategy defaults to Balanced.
	Strategy Strategy `json:"strategy,omitempty"`
	// Selectors limit the objects that the scheduler handles.
	Selectors Selectors `json:"selectors,omitempty"`
	// PurposeMappings define the clusters for requests, by purpose. If it is empty, ClusterRequests are left to another program, and only the
	// policy on AccessRequests is used.
	PurposeMappings map[string]*ClusterDefinition `json:"purposeMappings,omitempty"`
	// Policy restricts requests. Without it, every user may request everything.
	Policy *accesspolicy.Spec `json:"policy,omitempty"`

	requests labels.Selector
	policy   *accesspolicy.Policy
	// warnings are messages about settings that have less effect than they seem to.
	warnings []string
}

// schedules reports whether this process grants ClusterRequests.
func (c *Config) schedules() bool { return len(c.PurposeMappings) > 0 }

// Selectors are label selectors. One that is not set selects everything.
type Selectors struct {
	Clusters *metav1.LabelSelector `json:"clusters,omitempty"`
	Requests *metav1.LabelSelector `json:"requests,omitempty"`
}

// ClusterDefinition defines the clusters for a purpose.
type ClusterDefinition struct {
	// TenancyCount is the maximum number of requests that share a cluster, 0 for no limit. It must be 0 for tenancy Exclusive, too.
	TenancyCount int `json:"tenancyCount,omitempty"`
	// Selector is for the labels of shared clusters, in addition to the selector for all purposes.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// TrustedNamespaces are namespaces whose shared clusters are given to requests of all namespaces, in addition to those of the namespace in
	// which a new cluster would be created. Users who may create Clusters there offer them: they can see and change what requests do and store in
	// such a cluster. "*" is every namespace.
	TrustedNamespaces []string `json:"trustedNamespaces,omitempty"`
	// Template is the template of new clusters.
	Template ClusterTemplate `json:"template"`

	purpose  string
	clusters labels.Selector
}

// ClusterTemplate is the template of new clusters.
type ClusterTemplate struct {
	Metadata TemplateMetadata     `json:"metadata,omitempty"`
	Spec     v1alpha1.ClusterSpec `json:"spec"`
}

// TemplateMetadata is the metadata that a template can set.
type TemplateMetadata struct {
	Name         string            `json:"name,omitempty"`
	GenerateName string            `json:"generateName,omitempty"`
	Namespace    string            `json:"namespace,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	Annotations  map[string]string `json:"annotations,omitempty"`
}

// parse reads the block "scheduler" of YAML documents, of which later ones have precedence, and completes and checks it. Other blocks are for other
// controllers.
func parse(documents ...[]byte) (*Config, error) {
	merged := map[string]any{}
	for _, document := range documents {
		scheduler, err := block(document)
		if err != nil {
			return nil, err
		}
		merge(merged, scheduler)
	}
	if len(merged) == 0 {
		return nil, fmt.Errorf("the configuration has no block %q", "scheduler")
	}
	data, err := json.Marshal(merged)
	if err != nil {
		return nil, err
	}
	config := &Config{}
	if err := yaml.UnmarshalStrict(data, config); err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	return config, config.complete()
}

// block returns the block "scheduler" of a YAML document.
func block(document []byte) (map[string]any, error) {
	var blocks struct {
		Scheduler map[string]any `json:"scheduler"`
	}
	err := yaml.Unmarshal(document, &blocks)
	return blocks.Scheduler, err
}

func merge(into, from map[string]any) {
	for key, value := range from {
		deep, isMap := value.(map[string]any)
		if below, ok := into[key].(map[string]any); ok && isMap {
			merge(below, deep)
			continue
		}
		into[key] = value
	}
}

// complete sets defaults, and returns all errors at once.
func (c *Config) complete() error {
	asked := c.Scope
	c.Scope = cmp.Or(asked, ScopeCluster)
	if c.Strategy == "" {
		c.Strategy = StrategyBalanced
	}
	path := field.NewPath("scheduler")
	var errs field.ErrorList
	if scopes := []Scope{ScopeCluster, ScopeNamespaced}; !slices.Contains(scopes, c.Scope) {
		errs = append(errs, field.NotSupported(path.Child("scope"), c.Scope, scopes))
	}
	if strategies := []Strategy{StrategyBalanced, StrategyRandom, StrategySimple}; !slices.Contains(strategies, c.Strategy) {
		errs = append(errs, field.NotSupported(path.Child("strategy"), c.Strategy, strategies))
	}
	if !c.schedules() && (c.Policy == nil || c.Policy.AccessRequests == nil || c.Policy.ClusterRequests != nil) {
		errs = append(errs, field.Required(path.Child("purposeMappings"),
			"without a purpose no request can be granted: add one, or only configure policy.accessRequests"))
	}
	var invalid field.ErrorList
	c.requests, invalid = selector(c.Selectors.Requests, path.Child("selectors", "requests"))
	errs = append(errs, invalid...)
	_, invalid = selector(c.Selectors.Clusters, path.Child("selectors", "clusters"))
	errs = append(errs, invalid...)
	for _, purpose := range slices.Sorted(maps.Keys(c.PurposeMappings)) {
		at := path.Child("purposeMappings").Key(purpose)
		if definition := c.PurposeMappings[purpose]; definition == nil {
			errs = append(errs, field.Required(at, "a purpose needs a template"))
		} else {
			errs = append(errs, definition.complete(purpose, c.Selectors.Clusters, at)...)
			errs = append(errs, definition.validateTrust(c.Scope, at.Child("trustedNamespaces"))...)
			if asked == ScopeCluster && definition.Template.Spec.Tenancy == v1alpha1.TENANCY_SHARED && len(definition.TrustedNamespaces) == 0 {
				c.warnings = append(c.warnings, fmt.Sprintf("%s has no namespaces, so requests get no shared clusters of other namespaces, although "+
					"%s is %s: name the namespaces whose Clusters may be given to requests of all namespaces, or \"*\" for all",
					at.Child("trustedNamespaces"), path.Child("scope"), asked))
			}
		}
	}
	c.policy, invalid = accesspolicy.Compile(c.Policy, path.Child("policy"))
	return append(errs, invalid...).ToAggregate()
}

func (d *ClusterDefinition) complete(purpose string, global *metav1.LabelSelector, path *field.Path) (errs field.ErrorList) {
	d.purpose = purpose
	meta, spec := d.Template.Metadata, d.Template.Spec
	metaPath, specPath := path.Child("template", "metadata"), path.Child("template", "spec")

	d.clusters, errs = selector(both(global, d.Selector), path.Child("selector"))
	if len(errs) == 0 && !d.clusters.Matches(labels.Set(meta.Labels)) {
		errs = append(errs, field.Invalid(metaPath.Child("labels"), meta.Labels,
			fmt.Sprintf("a cluster with these labels would not be selected: the selectors ask for %s", d.clusters)))
	}
	if spec.Profile == "" {
		errs = append(errs, field.Required(specPath.Child("profile"), "name the ClusterProfile of new clusters"))
	}
	switch tenancies := []v1alpha1.Tenancy{v1alpha1.TENANCY_EXCLUSIVE, v1alpha1.TENANCY_SHARED}; {
	case spec.Tenancy == "":
		errs = append(errs, field.Required(specPath.Child("tenancy"), "must be Exclusive or Shared"))
	case !slices.Contains(tenancies, spec.Tenancy):
		errs = append(errs, field.NotSupported(specPath.Child("tenancy"), spec.Tenancy, tenancies))
	}
	if d.TenancyCount < 0 {
		errs = append(errs, field.Invalid(path.Child("tenancyCount"), d.TenancyCount, "must not be below 0"))
	} else if d.TenancyCount > 0 && spec.Tenancy == v1alpha1.TENANCY_EXCLUSIVE {
		errs = append(errs, field.Invalid(path.Child("tenancyCount"), d.TenancyCount, "must be 0 for the tenancy Exclusive"))
	}
	if meta.Namespace != "" {
		for _, wrong := range apivalidation.ValidateNamespaceName(meta.Namespace, false) {
			errs = append(errs, field.Invalid(metaPath.Child("namespace"), meta.Namespace, wrong))
		}
	}
	// Without a name in the template, the purpose is in the name of the cluster.
	for at, name := range map[*field.Path]string{
		metaPath.Child("name"): meta.Name, metaPath.Child("generateName"): strings.TrimSuffix(meta.GenerateName, "-"), path: purpose,
	} {
		if name == "" && at != path || at == path && meta.Name+meta.GenerateName != "" {
			continue
		}
		for _, wrong := range apivalidation.NameIsDNSSubdomain(name, false) {
			errs = append(errs, field.Invalid(at, name, wrong))
		}
	}
	errs = append(errs, metav1validation.ValidateLabels(meta.Labels, metaPath.Child("labels"))...)
	return append(errs, apivalidation.ValidateAnnotations(meta.Annotations, metaPath.Child("annotations"))...)
}

// validateTrust checks which namespaces a definition trusts.
func (d *ClusterDefinition) validateTrust(scope Scope, path *field.Path) (errs field.ErrorList) {
	if len(d.TrustedNamespaces) > 0 && scope == ScopeNamespaced {
		errs = append(errs, field.Forbidden(path, "must be empty, as scheduler.scope is Namespaced: requests get no clusters of other namespaces"))
	}
	if len(d.TrustedNamespaces) > 0 && d.Template.Spec.Tenancy == v1alpha1.TENANCY_EXCLUSIVE {
		errs = append(errs, field.Forbidden(path, "must be empty for the tenancy Exclusive: its clusters are made for one request"))
	}
	for i, namespace := range d.TrustedNamespaces {
		if namespace == everyNamespace {
			continue
		}
		for _, wrong := range apivalidation.ValidateNamespaceName(namespace, false) {
			errs = append(errs, field.Invalid(path.Index(i), namespace, wrong))
		}
	}
	return errs
}

// trusts reports whether clusters of a namespace may be given to a request. Users who may create Clusters elsewhere must not get access to the
// workloads of others. Labels prove nothing, since the creator of the Cluster sets them.
func (d *ClusterDefinition) trusts(namespace string, request *v1alpha1.ClusterRequest) bool {
	return namespace == d.namespaceFor(request) || slices.Contains(d.TrustedNamespaces, namespace) ||
		slices.Contains(d.TrustedNamespaces, everyNamespace)
}

// both returns a selector for what both select. If both have a value for one label, the first has precedence.
func both(first, second *metav1.LabelSelector) *metav1.LabelSelector {
	result := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for _, s := range []*metav1.LabelSelector{second, first} {
		if s != nil {
			maps.Copy(result.MatchLabels, s.MatchLabels)
			result.MatchExpressions = append(result.MatchExpressions, s.MatchExpressions...)
		}
	}
	return result
}

// selector converts a selector. One that is not set selects everything.
func selector(s *metav1.LabelSelector, path *field.Path) (labels.Selector, field.ErrorList) {
	if s == nil {
		return labels.Everything(), nil
	}
	if errs := metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, path); len(errs) > 0 {
		return labels.Nothing(), errs
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing(), field.ErrorList{field.Invalid(path, s, err.Error())}
	}
	return selector, nil
}
