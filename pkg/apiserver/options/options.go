// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package options turns hub-apiserver's flags into its configuration.
package options

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/clusterhub/clusterhub/pkg/admission/cluster/defaultclusterset"
	"github.com/clusterhub/clusterhub/pkg/admission/cluster/namespaceplacements"
	"github.com/clusterhub/clusterhub/pkg/admission/cluster/pendingclusters"
	"github.com/clusterhub/clusterhub/pkg/admission/namespacebounds"
	"github.com/clusterhub/clusterhub/pkg/admission/objectsize"
	"github.com/clusterhub/clusterhub/pkg/admission/work/executeas"
	"github.com/clusterhub/clusterhub/pkg/admission/work/manifestsize"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/apiserver"
	"github.com/clusterhub/clusterhub/pkg/etcd"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/agentlimit"
)

// DefaultEtcdPrefix is the prefix of all our keys.
const DefaultEtcdPrefix = "/registry/clusterhub.dev"

func init() {
	utilruntime.Must(utilfeature.DefaultMutableFeatureGate.Add(map[featuregate.Feature]featuregate.FeatureSpec{
		defaultclusterset.Feature: {Default: true, PreRelease: featuregate.Alpha},
		executeas.Feature:         {Default: false, PreRelease: featuregate.Alpha},
	}))
	utilruntime.Must(logsapi.AddFeatureGates(utilfeature.DefaultMutableFeatureGate))
}

// Options are hub-apiserver's flags.
type Options struct {
	Recommended  *genericoptions.RecommendedOptions
	ServerRun    *genericoptions.ServerRunOptions
	EmbeddedEtcd *etcd.Options
	Logs         *logsapi.LoggingConfiguration

	// AgentWrites is the limit for writes by the agents of one cluster.
	AgentWrites agentlimit.Limit
	// AgentLabelChanges is the limit for changes of the labels of their cluster.
	AgentLabelChanges agentlimit.Limit
	// AgentLabels are the keys of reserved labels that agents may set and remove on their own cluster.
	AgentLabels []string

	// ServiceNamespace and ServiceName are the Service of our APIServices.
	ServiceNamespace, ServiceName string
	// MaxPendingClusters is the largest number of clusters that wait to be accepted.
	MaxPendingClusters int
	// MaxPlacements is the largest number of placements in a namespace.
	MaxPlacements int
	// MaxInNamespace is the bound for all kinds in a namespace together.
	MaxInNamespace namespacebounds.Amount
	// MaxManifests is the largest size of the manifests of a work in bytes.
	MaxManifests int
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	o := &Options{
		Recommended: genericoptions.NewRecommendedOptions(DefaultEtcdPrefix,
			apiserver.Codecs.LegacyCodec(v1beta1.SchemeGroupVersion)),
		ServerRun:        genericoptions.NewServerRunOptions(),
		EmbeddedEtcd:     etcd.NewOptions(),
		Logs:             logsapi.NewLoggingConfiguration(),
		AgentWrites:      agentlimit.Limit{PerSecond: 5, Burst: 100},
		AgentLabels:      registration.DefaultAgentLabels(),
		ServiceNamespace: "clusterhub-system",
		ServiceName:      "hub-apiserver",

		AgentLabelChanges: agentlimit.Limit{PerSecond: 0.1, Burst: 10},

		MaxPendingClusters: pendingclusters.DefaultMost,
		MaxPlacements:      namespaceplacements.DefaultMost,
		MaxManifests:       manifestsize.DefaultMost,
		MaxInNamespace:     namespacebounds.Amount{Objects: namespacebounds.DefaultObjects, Bytes: namespacebounds.DefaultBytes},
	}
	// If the flags have no servers, etcd runs in this process.
	o.Recommended.Etcd.StorageConfig.Transport.ServerList = nil
	o.Recommended.SecureServing.BindPort = 8443
	// Watches end within this time at a shutdown. Otherwise they would delay it by a minute.
	o.ServerRun.ShutdownWatchTerminationGracePeriod = 10 * time.Second
	// A patch of a few lines can copy a list repeatedly (pkg/apiserver/entries). No object is larger than this.
	o.ServerRun.JSONPatchMaxCopyBytes = objectsize.Limit
	// Our own certificate is created by pkg/servingcert, and not written to a directory.
	o.Recommended.SecureServing.ServerCert.CertDirectory = ""
	registerAdmission(o.Recommended.Admission)
	return o
}

// Flags returns the flags, grouped for --help.
func (o *Options) Flags() (fss cliflag.NamedFlagSets) {
	o.ServerRun.AddUniversalFlags(fss.FlagSet("generic"))
	o.Recommended.AddFlags(fss.FlagSet("recommended"))
	o.EmbeddedEtcd.AddFlags(fss.FlagSet("embedded etcd"))
	logsapi.AddFlags(o.Logs, fss.FlagSet("logs"))
	o.addServiceFlags(fss.FlagSet("service"))
	fss.FlagSet("registration").IntVar(&o.MaxPendingClusters, "max-pending-clusters", o.MaxPendingClusters,
		"The maximum number of ManagedClusters that wait to be accepted. Above it, only users who may accept a cluster can create it. 0 means no limit.")
	fss.FlagSet("placements").IntVar(&o.MaxPlacements, "max-placements-per-namespace", o.MaxPlacements,
		"The maximum number of Placements in a namespace. 0 means no limit.")
	fss.FlagSet("namespaces").IntVar(&o.MaxInNamespace.Objects, "max-objects-per-namespace", o.MaxInNamespace.Objects,
		"The maximum number of objects in a namespace, of all kinds that hub-apiserver serves. 0 means no limit.")
	fss.FlagSet("namespaces").IntVar(&o.MaxInNamespace.Bytes, "max-bytes-per-namespace", o.MaxInNamespace.Bytes,
		"The maximum total size of the objects of a namespace in etcd, in bytes, of all kinds that hub-apiserver serves. 0 means no limit.")
	fss.FlagSet("works").IntVar(&o.MaxManifests, "max-manifests-bytes", o.MaxManifests, fmt.Sprintf(
		"The maximum total size of the manifests of a ManifestWork, or of the template of a ManifestWorkReplicaSet, as JSON, in bytes. "+
			"From %d to %d.", manifestsize.MinMost, manifestsize.GreatestMost))
	o.addAgentFlags(fss.FlagSet("agents"))
	return fss
}

func (o *Options) addAgentFlags(fs *pflag.FlagSet) {
	fs.Float64Var(&o.AgentWrites.PerSecond, "agent-writes-per-second", o.AgentWrites.PerSecond,
		"The average number of writes per second that this replica accepts from the agents of one cluster. 0 means no limit.")
	fs.IntVar(&o.AgentWrites.Burst, "agent-writes-burst", o.AgentWrites.Burst,
		"The number of writes that this replica accepts from the agents of one cluster at once, after a time without writes.")
	fs.Float64Var(&o.AgentLabelChanges.PerSecond, "agent-label-changes-per-second", o.AgentLabelChanges.PerSecond,
		"The average number of label changes per second that this replica accepts from the agents of one cluster. Each may move the cluster to other sets. "+
			"0 means no limit.")
	fs.IntVar(&o.AgentLabelChanges.Burst, "agent-label-changes-burst", o.AgentLabelChanges.Burst,
		"The number of label changes that this replica accepts from the agents of one cluster at once, after a time without changes.")
	fs.StringSliceVar(&o.AgentLabels, "agent-labels", o.AgentLabels,
		"Comma-separated list of the keys of reserved labels that the agent of an accepted cluster may set and remove on its own cluster without an RBAC rule. "+
			"Agents then decide whether their clusters are in sets that select by these keys. Empty means no keys.")
}

func (o *Options) addServiceFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.ServiceNamespace, "service-namespace", o.ServiceNamespace,
		"The namespace of the Service in the APIServices of this server. The CA of the serving certificate is stored in a Secret there.")
	fs.StringVar(&o.ServiceName, "service-name", o.ServiceName,
		"The name of the Service in the APIServices of this server. The serving certificate is issued for it.")
}

// embedded reports whether etcd runs in this process.
func (o *Options) embedded() bool {
	return len(o.Recommended.Etcd.StorageConfig.Transport.ServerList) == 0
}

// ownCertificate reports whether no certificate was provided.
func (o *Options) ownCertificate() bool {
	return o.Recommended.SecureServing.ServerCert.CertKey.CertFile == "" &&
		o.Recommended.SecureServing.ServerCert.CertKey.KeyFile == ""
}

// Validate returns all errors of the flags at once.
func (o *Options) Validate() error {
	errs := append([]error{}, o.ServerRun.Validate()...)
	if o.embedded() {
		errs = append(errs, o.EmbeddedEtcd.Validate()...)
		for _, err := range o.Recommended.Validate() {
			if err.Error() != "--etcd-servers must be specified" {
				errs = append(errs, err)
			}
		}
	} else {
		errs = append(errs, o.Recommended.Validate()...)
	}
	if o.MaxPendingClusters < 0 {
		errs = append(errs, fmt.Errorf("--max-pending-clusters must be 0 or above, not %d", o.MaxPendingClusters))
	}
	if o.MaxPlacements < 0 {
		errs = append(errs, fmt.Errorf("--max-placements-per-namespace must be 0 or above, not %d", o.MaxPlacements))
	}
	if o.MaxInNamespace.Objects < 0 || o.MaxInNamespace.Bytes < 0 {
		errs = append(errs, fmt.Errorf("--max-objects-per-namespace and --max-bytes-per-namespace must be 0 or above, not %d and %d",
			o.MaxInNamespace.Objects, o.MaxInNamespace.Bytes))
	}
	if err := manifestsize.CheckMost(o.MaxManifests); err != nil {
		errs = append(errs, fmt.Errorf("--max-manifests-bytes %w", err))
	}
	if o.AgentWrites.PerSecond < 0 || o.AgentWrites.Burst < 1 {
		errs = append(errs, errors.New("--agent-writes-per-second must be 0 or more, and --agent-writes-burst 1 or more"))
	}
	if o.AgentLabelChanges.PerSecond < 0 || o.AgentLabelChanges.Burst < 1 {
		errs = append(errs, errors.New("--agent-label-changes-per-second must be 0 or more, and --agent-label-changes-burst 1 or more"))
	}
	errs = append(errs, validateAgentLabels(o.AgentLabels)...)
	if o.ServiceNamespace == "" || o.ServiceName == "" {
		errs = append(errs, errors.New("--service-namespace and --service-name must not be empty"))
	}
	if o.Recommended.CoreAPI.CoreAPIKubeconfigPath == "" && !inCluster() {
		errs = append(errs, fmt.Errorf("--kubeconfig must name the kubeconfig of the hub's kube-apiserver when hub-apiserver runs outside of a cluster"))
	}
	return utilerrors.NewAggregate(errs)
}

func validateAgentLabels(keys []string) (errs []error) {
	for _, key := range keys {
		if why := validation.IsQualifiedName(key); len(why) > 0 {
			errs = append(errs, fmt.Errorf("--agent-labels: %q is not a label key: %s", key, strings.Join(why, "; ")))
		} else if !cluster.IsReservedLabel(key) {
			errs = append(errs, fmt.Errorf("--agent-labels: %q must begin with %s or %s: agents need no permission for other labels",
				key, cluster.ReservedLabelPrefixInfo, cluster.ReservedLabelPrefixCluster))
		}
	}
	return errs
}
