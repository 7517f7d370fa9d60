// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	namespaceFlag = "namespace"
	scopedFlag    = "namespace-scoped"
	wholeFlag     = "cluster-scoped"
	edgeFlag      = "edge-namespace"
	// edgeNamespace is the default namespace for the services of an edge agent of a whole cluster.
	edgeNamespace = "openhorizon-agent"
)

// installOptions are the options of a join whose agent makes an edge node of the cluster, or of one namespace of it.
type installOptions struct {
	*joinOptions
	// whole reports whether the agent is one of the whole cluster, in any namespace.
	whole bool
	// edgeNamespace is the default namespace for services.
	edgeNamespace string
}

// NewAgentInstallCommand returns the command agent install.
func NewAgentInstallCommand(opts *kit.Options) *cobra.Command {
	o := &installOptions{joinOptions: newJoinOptions(opts), edgeNamespace: edgeNamespace}
	cmd := &cobra.Command{
		Use:   "install --hub-token TOKEN --hub-apiserver URL [--namespace NAMESPACE]",
		Short: "Install an edge agent, or upgrade the existing one",
		Long: "install deploys hub-agent, which makes the cluster an edge node: deployment policies and patterns of the hub deploy services to it. " +
			"Afterwards, the hub must accept it, as after kubectl hub join.\n\n" +
			"With --namespace the agent is namespace-scoped: it has rights in that namespace alone, which must exist. It runs services there, with the " +
			"rights of the ClusterRole admin. A user who has that role in the namespace can install it; nothing is created outside of it. A cluster can have " +
			"many such agents, one per namespace, and one agent for the whole cluster.\n\n" +
			"Without --namespace the agent is for the whole cluster, as kubectl hub join deploys it, with the rights that --works sets. " +
			"--cluster-scoped with --namespace puts such an agent into another namespace. That is refused where users who are not admins of the cluster can read " +
			"Secrets, mint tokens or run pods: they could act as the agent.\n\n" +
			"If the same agent already exists, it is upgraded: omitted flags have their defaults, except for --cluster-name and --works, which stay unchanged. " +
			"All rights are checked before anything is created.",
		Example: kit.Example(`
kubectl hub agent install --namespace team-a --hub-token … --hub-apiserver https://hub.example.com --ca-data … --wait
kubectl hub agent install --namespace team-a --hub-token … --hub-apiserver … --output yaml
kubectl hub agent install --works cluster-admin --hub-token … --hub-apiserver … --cluster-name c1`),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.works.inSome = cmd.Flags().Changed(worksNamespacesFlag)
			if err := errors.Join(o.setScope(cmd.Flags()), o.setRegistry(cmd.Flags())); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	fs := cmd.Flags()
	o.addTo(cmd)
	fs.StringVarP(&o.namespace, namespaceFlag, "n", o.namespace, "Namespace that the agent is for, which must exist: it has rights there "+
		"alone, and runs services there and nowhere else. With --"+wholeFlag+", the namespace in which an agent of the whole cluster runs, by default "+registration.AgentNamespace+".")
	fs.Lookup(namespaceFlag).DefValue = "" // for an agent of one namespace
	fs.BoolVar(&o.scoped, scopedFlag, false, "Same as --"+namespaceFlag+" alone: the agent has rights in that namespace and in no other.")
	fs.BoolVar(&o.whole, wholeFlag, false, "The agent is for the whole cluster, also with --"+namespaceFlag+".")
	fs.StringVar(&o.edgeNamespace, edgeFlag, o.edgeNamespace, "Namespace for services that name none, for an agent of a whole cluster. It must not be the agent's.")
	cmd.Flag("cluster-name").Usage = "Name on the hub: a DNS label, at most 63 characters, that no other cluster and no other agent has. " +
		"Defaults to the name of the existing agent, or is made from the cluster's name in the kubeconfig and, for an agent of one namespace, that namespace."
	cmd.Flag(worksFlag).Usage = "The rights in the cluster with which an agent of a whole cluster deploys services: " + worksAdmin + " or " + worksClusterAdmin +
		", the ClusterRoles of these names. Defaults to the rights of the existing agent, or " + worksAdmin + ". A service with CustomResourceDefinitions " +
		"or ClusterRoles needs " + worksClusterAdmin + "."
	cmd.Flag("output").Usage =
		"Format of the result: text or json; yaml prints what would be created, including the token and credentials, and creates nothing."
	return cmd
}

// setScope decides whether the agent is namespace-scoped. With --namespace it is, unless --cluster-scoped is set.
func (o *installOptions) setScope(fs *pflag.FlagSet) error {
	named := fs.Changed(namespaceFlag)
	switch {
	case o.whole && o.scoped:
		return fmt.Errorf("--%s and --%s exclude each other: an agent has rights in one namespace or in the whole cluster", wholeFlag, scopedFlag)
	case o.scoped && !named:
		return fmt.Errorf("--%s must be set with --%s: the namespace that the agent is for", namespaceFlag, scopedFlag)
	case named && !o.whole && !o.scoped && fs.Changed(scopedFlag):
		return fmt.Errorf("--%s must be set with --%s and --%s=false: without it the agent is for that namespace", wholeFlag, namespaceFlag, scopedFlag)
	}
	o.scoped = named && !o.whole
	if o.scoped && fs.Changed(edgeFlag) {
		return fmt.Errorf("--%s is for agents of a whole cluster (--%s): services of this one go to --%s", edgeFlag, wholeFlag, namespaceFlag)
	}
	return nil
}

func (o *installOptions) validate() error {
	if err := checkAgentNamespace(o.namespace); err != nil {
		return err
	}
	if !o.scoped {
		return o.validateWhole()
	}
	switch {
	case o.namespace == registration.AgentNamespace:
		return fmt.Errorf("--%s must not be %s for an agent of one namespace: it is for agents of whole clusters. Set --%s to install one of them", namespaceFlag,
			o.namespace, wholeFlag)
	case strings.HasPrefix(o.namespace, kit.SystemNamespacePrefix):
		return fmt.Errorf("--%s must not be %s for an agent of one namespace: it belongs to Kubernetes, and the rights of %s there are rights to the whole cluster",
			namespaceFlag, o.namespace, worksAdmin)
	case o.works.role != "" || o.works.inSome:
		return fmt.Errorf("--%s and --%s are for agents of a whole cluster (--%s): one of --%s has the ClusterRole %s there", worksFlag, worksNamespacesFlag,
			wholeFlag, namespaceFlag, worksAdmin)
	case o.detect:
		return fmt.Errorf("--detect-cluster-labels is for agents of a whole cluster (--%s): an agent of one namespace may not list nodes", wholeFlag)
	}
	if auth, err := kit.NormalizeAuth(o.auth); err == nil && auth != kit.AuthCSR {
		return fmt.Errorf("--registration-auth must be %s for an agent of one namespace, not %s: IAM roles are those of clusters, which all agents of a cluster "+
			"would share", kit.AuthCSR, auth)
	}
	o.works = worksOptions{role: worksAdmin, namespaces: []string{o.namespace}}
	return nil
}

func (o *installOptions) validateWhole() error {
	if o.works.role == worksNone {
		return fmt.Errorf("--%s must not be %s: without works the agent deploys no services", worksFlag, worksNone)
	}
	if why := validation.IsDNS1123Label(o.edgeNamespace); len(why) > 0 {
		return fmt.Errorf("--%s: %q is not the name of a namespace: %s", edgeFlag, o.edgeNamespace, strings.Join(why, "; "))
	}
	if o.edgeNamespace == o.namespace {
		return fmt.Errorf("--%s must not be %s, the agent's own namespace: a service that can read Secrets there could act as the agent", edgeFlag, o.namespace)
	}
	for _, namespace := range o.works.namespaces {
		if namespace == o.namespace {
			return fmt.Errorf("--%s must not include %s: it is the agent's own namespace, where works cannot have objects", worksNamespacesFlag, namespace)
		}
	}
	o.edge = []string{deploy.EdgeFlag, "--edge-namespace=" + o.edgeNamespace}
	return nil
}

func checkAgentNamespace(name string) error {
	if why := validation.IsDNS1123Label(name); len(why) > 0 {
		return fmt.Errorf("--%s: %q is not the name of a namespace: %s", namespaceFlag, name, strings.Join(why, "; "))
	}
	return nil
}

func (o *installOptions) run(ctx context.Context) error {
	if err := errors.Join(o.validate(), o.ValidateTimeout()); err != nil {
		return err
	}
	ctx, cancel := o.Limit(ctx)
	defer cancel()
	if err := o.complete(ctx); err != nil {
		return err
	}
	if err := o.joinOptions.validate(); err != nil {
		return err
	}
	return o.deploy(ctx, func(m *managed, objects []*unstructured.Unstructured) error {
		if err := m.checkCreate(ctx, objects); err != nil {
			return err
		}
		if !o.scoped && o.namespace != registration.AgentNamespace {
			if err := checkShared(ctx, m); err != nil {
				return err
			}
		}
		return m.tryAllRights(ctx, objects)
	})
}

// complete sets missing values from the installed agent or from the kubeconfig. If manifests are printed, it does not read the cluster.
func (o *installOptions) complete(ctx context.Context) error {
	if o.out.Value != "yaml" {
		m, err := managedCluster(o.Options, o.namespace)
		if err != nil {
			return err
		}
		m.scoped = o.scoped
		if err := o.completeFrom(ctx, m); err != nil {
			return err
		}
	}
	if o.works.role == "" {
		o.works.role = worksAdmin
	}
	if o.clusterName != "" {
		return nil
	}
	o.clusterName = o.nameOfCluster()
	if o.clusterName == "" {
		return errors.New("--cluster-name must be set: no name can be made from the cluster's name in the kubeconfig")
	}
	_, _ = fmt.Fprintf(o.ErrOut, "Its name on the hub is %s (set --cluster-name for another)\n", o.clusterName)
	return nil
}

func (o *installOptions) completeFrom(ctx context.Context, m *managed) error {
	if o.scoped {
		if err := m.checkNamespace(ctx); err != nil {
			return err
		}
	}
	there, err := m.find(ctx)
	switch {
	case apierrors.IsForbidden(err):
		return nil // the caller reports missing rights when it knows the objects
	case err != nil:
		return err
	case there.found && there.scoped != o.scoped:
		return fmt.Errorf("the agent in namespace %s is for %s, and that cannot be changed: %s, run kubectl hub agent uninstall --%s %[1]s first, or use "+
			"another namespace", o.namespace, scopeOf(there.scoped), upgradeOf(there.scoped), namespaceFlag)
	case there.clusterName != "" && o.clusterName != "" && there.clusterName != o.clusterName:
		return fmt.Errorf("namespace %s already has an agent, of the cluster %s: run kubectl hub agent uninstall --%s %[1]s first, use another "+
			"namespace, or install it with that name", o.namespace, there.clusterName, namespaceFlag)
	}
	if o.clusterName == "" && there.clusterName != "" {
		o.clusterName = there.clusterName
		_, _ = fmt.Fprintf(o.ErrOut, "Namespace %s already has an agent, of the cluster %s: upgrading it\n", o.namespace, o.clusterName)
	}
	if o.scoped {
		return nil
	}
	return o.completeWhole(ctx, m)
}

// completeWhole fails if the cluster already has an agent of the whole cluster elsewhere, and keeps the permissions for works of the existing agent.
func (o *installOptions) completeWhole(ctx context.Context, m *managed) error {
	elsewhere, err := clusterAgentElsewhere(ctx, m)
	if err == nil && elsewhere != "" {
		return fmt.Errorf("namespace %s already has an agent of the whole cluster, and a cluster can have only one: run kubectl hub agent uninstall --%s %[1]s "+
			"first, or install the agent of one namespace by --%[2]s NAMESPACE without --%[3]s", elsewhere, namespaceFlag, wholeFlag)
	}
	if err == nil && o.works.role == "" {
		var given deploy.Works
		given, err = m.worksGiven(ctx)
		o.works.role, o.works.namespaces = given.Role, given.Namespaces
	}
	if apierrors.IsForbidden(err) {
		return m.askFor(ctx, "this user may not get the agent of the whole cluster (nothing was created)")
	}
	return err
}

func scopeOf(scoped bool) string {
	if scoped {
		return "this namespace alone"
	}
	return "the whole cluster"
}

// upgradeOf returns how to upgrade the installed agent.
func upgradeOf(scoped bool) string {
	if scoped {
		return "leave --" + wholeFlag + " out to upgrade it"
	}
	return "set --" + wholeFlag + " to upgrade it"
}

// clusterAgentElsewhere returns the namespace of an agent of the whole cluster if it is not m's namespace. Two such agents would share one role.
func clusterAgentElsewhere(ctx context.Context, m *managed) (string, error) {
	binding := &rbacv1.ClusterRoleBinding{}
	if err := m.Get(ctx, client.ObjectKey{Name: deploy.AgentRole}, binding); err != nil {
		return "", m.Explain(client.IgnoreNotFound(err))
	}
	for _, subject := range binding.Subjects {
		if subject.Kind == rbacv1.ServiceAccountKind && subject.Namespace != m.namespace {
			return subject.Namespace, nil
		}
	}
	return "", nil
}

// notInLabels matches the characters that a DNS label cannot have.
var notInLabels = regexp.MustCompile(`[^a-z0-9]+`)

// nameOfCluster derives a name on the hub from the cluster's name in the kubeconfig and from the agent's namespace. It returns "" if there is no
// name. A name that is too long is cut, and gets a hash of the whole name.
func (o *installOptions) nameOfCluster() string {
	whole := o.ContextCluster()
	parts := []string{whole[strings.LastIndex(whole, "/")+1:]} // EKS uses the ARN as the name
	if o.scoped {
		parts = append(parts, o.namespace)
	}
	var words []string
	for _, part := range parts {
		word := strings.Trim(notInLabels.ReplaceAllString(strings.ToLower(part), "-"), "-")
		if word == "" {
			return ""
		}
		words = append(words, word)
	}
	name := strings.Join(words, "-")
	if len(name) <= validation.DNS1123LabelMaxLength {
		return name
	}
	sum := sha256.Sum256([]byte(strings.Join(append(parts, whole), "\x00")))
	hash := hex.EncodeToString(sum[:4])
	return strings.TrimRight(name[:validation.DNS1123LabelMaxLength-len(hash)-1], "-") + "-" + hash
}
