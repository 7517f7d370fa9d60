// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/cli/management"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	remote "github.com/clusterhub/clusterhub/pkg/remote/apply"
)

const klusterletFlag = "klusterlet"

// detachedOptions are the flags of join for a cluster whose agent runs on another one.
type detachedOptions struct {
	management.ModeFlags
	operator management.OperatorFlags
	managed  management.Source
	name     string
	// ownImage reports whether the user has set the image of the agent.
	ownImage bool
}

func (o *detachedOptions) addTo(cmd *cobra.Command, version string) {
	fs := cmd.Flags()
	o.managed = management.Source{Flag: management.ManagedKubeconfigFlag, What: "the managed cluster"}
	o.AddModeTo(cmd, "Where the agent runs: "+management.ModeDefault+" is on the managed cluster, "+management.ModeDetached+" on a management cluster, in the namespace "+
		"<klusterlet>-open-cluster-management-agent there, and "+management.ModeHosted+" in the namespace <klusterlet> there, as Open Cluster Management has it.")
	o.AddManagementTo(fs)
	fs.StringVar(&o.managed.File, management.ManagedKubeconfigFlag, "", "File with the kubeconfig of an admin of the managed cluster, for --"+management.ModeFlag+"="+management.ModeDetached+
		". hub-operator creates accounts with fewer rights by it. It must not need a program or files of this machine to authenticate.")
	fs.StringVar(&o.managed.File, "managed-cluster-kubeconfig", "", "Same as --"+management.ManagedKubeconfigFlag+".")
	fs.StringVar(&o.managed.Context, "managed-context", "", "Context of --"+management.ManagedKubeconfigFlag+". Defaults to its current context.")
	fs.StringVar(&o.name, klusterletFlag, "", "Name of the Klusterlet on the management cluster. Defaults to --cluster-name.")
	o.operator.AddTo(fs, version)
}

func (o *detachedOptions) validate(join *joinOptions) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if !o.IsOutside() {
		if o.managed.File != "" || o.managed.Context != "" || o.name != "" {
			return fmt.Errorf("--%s, --managed-context and --%s are for --%s=%s", management.ManagedKubeconfigFlag, klusterletFlag, management.ModeFlag, management.ModeDetached)
		}
		return nil
	}
	o.name = cmp.Or(o.name, join.clusterName)
	if err := management.CheckName(klusterletFlag, o.name, o.namespace()); err != nil {
		return err
	}
	if len(o.name) > operatorv1.MaxKlusterletName {
		return fmt.Errorf("--%s must be set to a name of at most %d characters, not %q: the names of its Deployments and ServiceAccounts begin with it", klusterletFlag,
			operatorv1.MaxKlusterletName, o.name)
	}
	if join.auth != kit.AuthCSR {
		return fmt.Errorf("--registration-auth=%s is for --%s=%s: an agent that runs elsewhere cannot authenticate as the EKS cluster that it serves", join.auth, management.ModeFlag, management.ModeDefault)
	}
	if join.works.deployed().Role == "" {
		return fmt.Errorf("--%s must be set to %s or %s for --%s=%s, where hub-operator always runs the work agent, which has these rights on the managed cluster",
			worksFlag, worksAdmin, worksClusterAdmin, management.ModeFlag, o.Mode)
	}
	if err := o.operator.Validate(); err != nil {
		return err
	}
	if err := join.pods.validate(); err != nil {
		return err
	}
	o.operator.PullConfig = join.pods.pullConfig
	return o.managed.Read()
}

// namespace returns the namespace of the agent on the management cluster.
func (o *detachedOptions) namespace() string { return o.klusterlet().AgentNamespace() }

func (o *detachedOptions) klusterlet() *operatorv1.Klusterlet {
	k := &operatorv1.Klusterlet{ObjectMeta: metav1.ObjectMeta{Name: o.name}}
	k.Spec.DeployOption.Mode = o.InstallMode()
	return k
}

// desired returns the Klusterlet with only the fields that join sets.
func (o *joinOptions) desired() *unstructured.Unstructured {
	spec := map[string]any{
		"clusterName":  o.clusterName,
		"deployOption": map[string]any{"mode": string(o.detached.InstallMode())},
	}
	if o.serverURL != "" {
		spec["externalServerURLs"] = []any{map[string]any{"url": o.serverURL}}
	}
	if len(o.labels) > 0 {
		labels := map[string]any{}
		for key, value := range o.labels {
			labels[key] = value
		}
		spec["registrationConfiguration"] = map[string]any{"clusterLabels": labels}
	}
	own := map[string]any{"works": o.works.desired()}
	if names := o.pods.pullNames(); len(names) > 0 {
		own["imagePullSecrets"] = names
	}
	spec["clusterhub"] = own
	if resources := o.pods.requirement(); resources != nil {
		spec["resourceRequirement"] = resources
	}
	if o.detached.ownImage {
		spec["registrationImagePullSpec"], spec["workImagePullSpec"] = o.image, o.image
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": operatorv1.SchemeGroupVersion.String(), "kind": "Klusterlet",
		"metadata": map[string]any{"name": o.detached.name},
		"spec":     spec,
	}}
}

// secrets returns the agent's kubeconfigs for the managed cluster and for the hub.
func (o *joinOptions) secrets() ([]*unstructured.Unstructured, error) {
	bootstrap, err := o.way.kubeconfig()
	if err != nil {
		return nil, err
	}
	namespace := o.detached.namespace()
	secrets, err := management.ToUnstructured(management.NewKubeconfigSecret(namespace, operatorv1.ExternalManagedKubeconfig, o.detached.managed.Data),
		management.NewKubeconfigSecret(namespace, operatorv1.BootstrapHubKubeconfig, bootstrap))
	if err == nil && len(o.pods.pullConfig) > 0 {
		secrets = append(secrets, deploy.PullSecret(namespace, o.pods.pullConfig))
	}
	return secrets, err
}

// runDetached runs all checks before it creates anything, and can be run again wherever it was interrupted.
func (o *joinOptions) runDetached(ctx context.Context) error {
	known, err := o.way.try(ctx, o.clusterName, o.auth)
	if err != nil {
		return err
	}
	if o.serverURL == "" && !kit.IsLoopback(o.detached.managed.Config.Host) {
		o.serverURL = o.detached.managed.Config.Host
	}
	secrets, err := o.secrets()
	if err != nil {
		return err
	}
	if o.out.Value == "yaml" {
		return o.printDetached(secrets)
	}
	m, err := management.Connect(ctx, o.Options, &o.detached.ModeFlags)
	if err != nil {
		return err
	}
	if err := o.detached.managed.Try(ctx, o.Options); err != nil {
		return err
	}
	if o.detached.managed.ClusterUID == m.UID {
		return fmt.Errorf("--%s and the management cluster are the same cluster: omit --%s to run the agent on the cluster itself, or choose "+
			"another --%s", management.ManagedKubeconfigFlag, management.ModeFlag, management.ContextFlag)
	}
	plan, err := m.PlanOperator(ctx, &o.detached.operator)
	if err != nil {
		return err
	}
	if err := m.CheckObjectRights(ctx, "klusterlets", o.detached.namespace(), "join a cluster"); err != nil {
		return err
	}
	if err := checkKlusterlet(ctx, m, o, known); err != nil {
		return err
	}
	if err := m.InstallOperator(ctx, plan, "Klusterlet", &operatorv1.KlusterletList{}); err != nil {
		return err
	}
	if err := m.ApplyObject(ctx, o.desired()); err != nil {
		return err
	}
	if err := m.ApplySecrets(ctx, "Klusterlet "+o.detached.name, secrets); err != nil {
		return err
	}
	if o.Wait {
		if err := awaitKlusterlet(ctx, m, o.detached.name); err != nil {
			return err
		}
	}
	return o.printResult()
}

// printDetached prints what would be created. hub-operator creates the namespace of the secrets.
func (o *joinOptions) printDetached(secrets []*unstructured.Unstructured) error {
	if err := o.detached.operator.NeedImage(o.Version); err != nil {
		return err
	}
	objects, err := o.detached.operator.Objects()
	if err != nil {
		return err
	}
	objects = append(objects, o.desired())
	return printManifests(o.Out, append(objects, secrets...))
}

// checkKlusterlet returns an error if a Klusterlet of that name exists and is for something else.
func checkKlusterlet(ctx context.Context, m *management.Client, o *joinOptions, known bool) error {
	have := &operatorv1.Klusterlet{}
	err := m.Get(ctx, client.ObjectKey{Name: o.detached.name}, have)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		if known {
			m.Warn("the hub already has a cluster %s: if it is another cluster, join with another name; if it is this cluster, from an "+
				"earlier join, delete it on the hub or approve the certificate request of the new agent", o.clusterName)
		}
		return checkKlusterletSecrets(ctx, m, o, "")
	case err != nil:
		return m.Explain(err)
	}
	other := fmt.Sprintf("choose another name by --%s, or run kubectl hub unjoin --%s=%s --%[1]s=%[4]s --cluster-name %[5]s first", klusterletFlag, management.ModeFlag,
		o.detached.Mode, o.detached.name, cmp.Or(have.Spec.ClusterName, "NAME"))
	switch {
	case !have.DeletionTimestamp.IsZero():
		return fmt.Errorf("the Klusterlet %s is being deleted: wait until it is gone (kubectl hub get klusterlets shows what it waits for), or choose another name by --%s",
			o.detached.name, klusterletFlag)
	case have.Mode() != o.detached.InstallMode():
		return fmt.Errorf("the Klusterlet %s has the mode %s, which cannot be changed: %s", o.detached.name, have.Mode(), other)
	case have.Spec.ClusterName != o.clusterName:
		return fmt.Errorf("the Klusterlet %s is for the cluster %q of its hub, not for %s: %s", o.detached.name, have.Spec.ClusterName, o.clusterName, other)
	case !kit.Owner.Owns(have):
		return m.Explain(&remote.NotOurs{Object: remote.IDOf(o.desired()), Owner: kit.Owner})
	}
	return checkKlusterletSecrets(ctx, m, o, other)
}

// checkKlusterletSecrets returns an error if the existing secrets are for another hub or cluster, even if the names are the same.
func checkKlusterletSecrets(ctx context.Context, m *management.Client, o *joinOptions, other string) error {
	of, namespace := "Klusterlet "+o.detached.name, o.detached.namespace()
	if err := m.CheckSecret(ctx, namespace, operatorv1.ExternalManagedKubeconfig, of, o.detached.managed.Parsed.Server(), other); err != nil {
		return err
	}
	return m.CheckSecret(ctx, namespace, operatorv1.BootstrapHubKubeconfig, of, o.way.server, other)
}

func (o *joinOptions) printResult() error {
	works, worksSaid := o.works.result()
	result := struct {
		Name         string      `json:"name"`
		Hub          string      `json:"hub-apiserver"`
		Registration string      `json:"registration"`
		Mode         string      `json:"mode"`
		Klusterlet   string      `json:"klusterlet"`
		Namespace    string      `json:"namespace"`
		Works        worksResult `json:"works"`
		Joined       bool        `json:"joined"`
		Next         string      `json:"next,omitempty"`
	}{Name: o.clusterName, Hub: o.way.server, Registration: o.auth, Mode: o.detached.Mode, Klusterlet: o.detached.name,
		Namespace: o.detached.namespace(), Works: works, Joined: o.Wait}
	if o.Wait {
		return o.out.Print(o.Out, result, "Cluster %s has joined the hub %s. Its agent runs on the management cluster, in the namespace %s.\n%s\n",
			o.clusterName, o.way.server, result.Namespace, worksSaid)
	}
	result.Next = acceptCommand(o.clusterName)
	return o.out.Print(o.Out, result, "hub-operator runs the agent of cluster %s on the management cluster, in the namespace %s.\n%s\nOn the hub, accept it:\n\n"+
		"    %s\n\nkubectl hub get klusterlets shows what it waits for.\n", o.clusterName, result.Namespace, worksSaid, result.Next)
}

func acceptCommand(cluster string) string { return "kubectl hub accept --clusters " + cluster }
