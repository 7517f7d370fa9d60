// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package work implements the task that applies the ManifestWorks of the cluster.
package work

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"

	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/limits"
	"github.com/clusterhub/clusterhub/pkg/agent/rights"
	"github.com/clusterhub/clusterhub/pkg/agent/spoke"
	"github.com/clusterhub/clusterhub/pkg/agent/task"
	"github.com/clusterhub/clusterhub/pkg/agent/work"
	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/agent/work/drift"
	"github.com/clusterhub/clusterhub/pkg/agent/work/executor"
	"github.com/clusterhub/clusterhub/pkg/agent/work/kinds"
	"github.com/clusterhub/clusterhub/pkg/agent/work/memory"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/work/feedback"
)

// Options are the flags of the task.
type Options struct {
	// Enabled makes the agent apply works.
	Enabled bool
	// Grace is the time for which a work may be missing on the hub before its objects are deleted.
	Grace time.Duration
	// AgentID identifies the agent in a cluster that has several hubs. The default is the hash of the hub's address.
	AgentID string
	// UpgradeRepository is the repository of the images that works may set in the agent's own Deployment; empty if works may not set one.
	UpgradeRepository string
	// Namespace is the one namespace of the objects of works, and of the agent's records. It is empty for works of the whole cluster.
	Namespace string
	// MaxWatches is the maximum number of objects that are watched.
	MaxWatches int
	// Requests limits the requests for works to the managed cluster's API server, and HubRequests those to the hub.
	Requests, HubRequests limits.Requests
	// Feedback configures how values of objects are reported to the hub: by RawFeedback, and by a flag.
	Feedback feedback.Options
}

// RawFeedback is the feature gate for lists and objects in feedback: upstream's.
const RawFeedback featuregate.Feature = "RawFeedbackJsonString"

// The prefixes of flags.
const flagRequests, flagHubRequests = "works-", "works-hub-"

// NewOptions returns the defaults.
func NewOptions() Options {
	return Options{Grace: time.Hour, MaxWatches: 5000, Requests: limits.Default(), HubRequests: limits.Default(),
		Feedback: feedback.Options{MaxJSONRaw: feedback.MaxJSONRaw}}
}

// AddFlags adds the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.Enabled, "works", o.Enabled,
		"If true, the agent applies the ManifestWorks of the cluster. The cluster requires the CustomResourceDefinition of AppliedManifestWorks, unless "+
			"--works-namespace is set, and the agent the rights to the objects of the works.")
	fs.StringVar(&o.Namespace, "works-namespace", o.Namespace,
		"The only namespace on the managed cluster in which works may have objects. The agent records the objects in ConfigMaps there, "+
			"and requires no rights outside of it. If empty, works may have objects in all namespaces, and the agent records them in AppliedManifestWorks. "+
			"Do not change it while works exist.")
	fs.DurationVar(&o.Grace, "appliedmanifestwork-eviction-grace-period", o.Grace,
		"The time for which a work may be missing on a hub that no longer exists or was restored from a backup, before its objects are deleted. "+
			"With 100 years or more, they are never deleted.")
	fs.StringVar(&o.AgentID, "agent-id", o.AgentID,
		"The name of this agent in AppliedManifestWorks. If the address of the hub changes, an agent adopts its AppliedManifestWorks only with the same name. "+
			"The default is a hash of the hub's address.")
	fs.StringVar(&o.UpgradeRepository, "upgrade-repository", o.UpgradeRepository,
		"The repository of images, such as clusterhub/hub-agent, of which works may set a tag or a digest in the agent's own Deployment, "+
			registration.AgentDeployment+" in --namespace. Users who write works then decide which image of that repository has the rights and the identity of the agent. "+
			"If empty, works must not contain the Deployment.")
	fs.IntVar(&o.MaxWatches, "max-work-watches", o.MaxWatches,
		"The maximum number of objects of works that are watched, with one request for each. The others are checked every five minutes.")
	o.Requests.AddFlags(fs, flagRequests, "to the managed cluster for works")
	o.HubRequests.AddFlags(fs, flagHubRequests, "to the hub for works")
	fs.IntVar(&o.Feedback.MaxJSONRaw, "max-json-raw-length", o.Feedback.MaxJSONRaw, fmt.Sprintf(
		"The maximum size of a list or object in the feedback of works, as JSON, in bytes, 1 to %d. Requires the feature gate %s.", feedback.MaxJSONRaw, RawFeedback))
}

// Validate returns all errors of the flags.
func (o *Options) Validate() (errs []error) {
	if o.Grace < 0 {
		errs = append(errs, fmt.Errorf("--appliedmanifestwork-eviction-grace-period must be at least 0, not %s", o.Grace))
	}
	if repository, version, err := registration.SplitImage(o.UpgradeRepository); o.UpgradeRepository != "" && (err != nil || version != "" || repository != o.UpgradeRepository) {
		errs = append(errs, fmt.Errorf("--upgrade-repository must be the name of an image without tag and digest, not %q", o.UpgradeRepository))
	}
	if o.UpgradeRepository != "" && !o.Enabled {
		errs = append(errs, errors.New("--upgrade-repository needs --works: works set the image"))
	}
	if o.MaxWatches < 0 {
		errs = append(errs, fmt.Errorf("--max-work-watches must be at least 0, not %d", o.MaxWatches))
	}
	if why := validation.IsDNS1123Label(o.Namespace); o.Namespace != "" && len(why) > 0 {
		errs = append(errs, fmt.Errorf("--works-namespace: %q is not a DNS label: %s", o.Namespace, strings.Join(why, "; ")))
	}
	if o.Feedback.MaxJSONRaw < 1 || o.Feedback.MaxJSONRaw > feedback.MaxJSONRaw {
		errs = append(errs, fmt.Errorf("--max-json-raw-length must be 1 to %d, not %d", feedback.MaxJSONRaw, o.Feedback.MaxJSONRaw))
	}
	errs = append(errs, o.Requests.Validate(flagRequests)...)
	errs = append(errs, o.HubRequests.Validate(flagHubRequests)...)
	if len(o.AgentID) > 253 {
		errs = append(errs, errors.New("--agent-id must have at most 253 characters"))
	}
	return errs
}

// Rights are the rights that the task itself needs. An admin of the cluster must grant the rights to the objects of works.
var Rights = rights.Rights{
	Hub: rights.Rules{Namespace: []rbacv1.PolicyRule{
		rights.Rule(apply.WorkGroup, "manifestworks", "get", "list", "watch", "patch"),
		rights.Rule(apply.WorkGroup, "manifestworks/status", "patch"),
	}},
	Own: rights.Rules{Cluster: []rbacv1.PolicyRule{
		rights.Rule(apply.WorkGroup, "appliedmanifestworks", "get", "list", "watch", "create", "patch", "delete"),
		rights.Rule(apply.WorkGroup, "appliedmanifestworks/status", "patch"),
		rights.Rule("authorization.k8s.io", "subjectaccessreviews", "create"),
	}},
}

// NamespaceRights are the same for works of one namespace: in that namespace, and nowhere else.
var NamespaceRights = rights.Rights{
	Hub: Rights.Hub,
	Own: rights.Rules{Namespace: []rbacv1.PolicyRule{
		rights.Rule("", "configmaps", "get", "list", "watch", "create", "patch", "delete"),
		rights.Rule("authorization.k8s.io", "localsubjectaccessreviews", "create"),
	}},
}

// UpgradeRights are the rights to set the image of the agent. RBAC does not know fields: the agent itself enforces that works set no other field.
var UpgradeRights = rights.Rights{Own: rights.Rules{Namespace: []rbacv1.PolicyRule{
	rights.Named(registration.AgentDeployment, rights.Rule("apps", "deployments", "get", "list", "watch", "patch")),
}}}

// rights returns the rights that the flags require.
func (o Options) rights() rights.Rights {
	needed := Rights
	if o.Namespace != "" {
		needed = NamespaceRights
	}
	if o.UpgradeRepository != "" {
		needed = rights.Sum(needed, UpgradeRights)
	}
	return needed
}

// own returns the objects of the agent.
func (o Options) own(cluster *spoke.Cluster) work.Own {
	own := work.Own{Namespace: cluster.Namespace, Home: cluster.Home, Repository: o.UpgradeRepository}
	if name, found := strings.CutPrefix(o.AgentID, registration.KlusterletAgentPrefix); found {
		own.Klusterlet = name
	}
	return own
}

// New returns the task.
func New(o Options, own *spoke.Cluster) task.Task {
	return task.Task{Name: "applying works", Rights: o.rights(), Run: func(ctx context.Context, s task.Session) error {
		agent, err := o.agent(own, s)
		if err != nil {
			return err
		}
		return agent.Run(ctx)
	}}
}

func (o Options) agent(own *spoke.Cluster, s task.Session) (*work.Agent, error) {
	url, err := hub.URL(s.State.Kubeconfig)
	if err != nil {
		return nil, err
	}
	watching := o.Requests.In(own.Config)
	metadataClient, err := metadata.NewForConfig(watching)
	if err != nil {
		return nil, err
	}
	limited := rest.CopyConfig(watching)
	limited.Timeout = spoke.Timeout
	client, err := dynamic.NewForConfig(limited)
	if err != nil {
		return nil, err
	}
	discoveryClient, err := discovery.NewDiscoveryClientForConfig(limited)
	if err != nil {
		return nil, err
	}
	executors, err := executor.New(limited, o.Namespace)
	if err != nil {
		return nil, err
	}
	hash := memory.HubHash(url)
	var home memory.Memory = memory.NewApplied(client, hash, o.AgentID)
	if o.Namespace != "" {
		// Several agents may share a namespace.
		hash = memory.HubHash(url + "/" + s.State.ClusterName)
		home = memory.NewNamespaced(client, o.Namespace, hash, o.AgentID)
	}
	return work.New(work.Options{
		Works: s.Hub.Works.ManifestWorks(s.State.ClusterName), Namespace: s.State.ClusterName,
		Cluster: client, Kinds: kinds.New(discoveryClient),
		Drift:     &drift.Watcher{Client: metadataClient, Most: o.MaxWatches},
		Memory:    home,
		Only:      o.Namespace,
		Executors: executors, HubHash: hash, Own: o.own(own), Grace: o.Grace, Feedback: o.Feedback, Random: s.Random,
	}), nil
}
