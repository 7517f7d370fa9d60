// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/remote"
)

const klusterletFlag = "klusterlet"

// detachedOptions are the flags of join for a cluster whose agent runs on another one.
type detachedOptions struct {
	outside
	operator operatorOptions
	managed  source
	name     string
	// ownImage reports whether the user has set the image of the agent.
	ownImage bool
}

func (o *detachedOptions) addTo(cmd *cobra.Command, version string) {
	fs := cmd.Flags()
	o.managed = source{flag: managedKubeconfigFlag, what: "the managed cluster"}
	o.addModeTo(cmd, "Where the agent runs: "+modeDefault+" is on the managed cluster, "+modeDetached+" on a management cluster, in the namespace "+
		"<klusterlet>-open-cluster-management-agent there, and "+modeHosted+" in the namespace <klusterlet> there, as Open Cluster Management has it.")
	o.addManagementTo(fs)
	fs.StringVar(&o.managed.file, managedKubeconfigFlag, "", "File with the kubeconfig of an admin of the managed cluster, for --"+modeFlag+"="+modeDetached+
		". hub-operator creates accounts with fewer rights by it. It must not need a program or files of this machine to authenticate.")
	fs.StringVar(&o.managed.file, "managed-cluster-kubeconfig", "", "Same as --"+managedKubeconfigFlag+".")
	fs.StringVar(&o.managed.context, "managed-context", "", "Context of --"+managedKubeconfigFlag+". Defaults to its current context.")
	fs.StringVar(&o.name, klusterletFlag, "", "Name of the Klusterlet on the management cluster. Defaults to --cluster-name.")
	o.operator.addTo(fs, version)
}

func (o *detachedOptions) validate(join *joinOptions) error {
	if err := o.outside.validate(); err != nil {
		return err
	}
	if !o.isOutside() {
		if o.managed.file != "" || o.managed.context != "" || o.name != "" {
			return fmt.Errorf("--%s, --managed-context and --%s are for --%s=%s", managedKubeconfigFlag, klusterletFlag, modeFlag, modeDetached)
		}
		return nil
	}
	o.name = cmp.Or(o.name, join.clusterName)
	if err := checkOutsideName(klusterletFlag, o.name, o.namespace()); err != nil {
		return err
	}
	if len(o.name) > operatorv1.MaxKlusterletName {
		return fmt.Errorf("--%s must be set to a name of at most %d characters, not %q: the names of its Deployments and ServiceAccounts begin with it", klusterletFlag,
			operatorv1.MaxKlusterletName, o.name)
	}
	if join.auth != authCSR {
		return fmt.Errorf("--registration-auth=%s is for --%s=%s: an agent that runs elsewhere cannot authenticate as the EKS cluster that it serves", join.auth, modeFlag, modeDefault)
	}
	if join.works.deployed().Role == "" {
		return fmt.Errorf("--%s must be set to %s or %s for --%s=%s, where hub-operator always runs the work agent, which has these rights on the managed cluster",
			worksFlag, worksAdmin, worksClusterAdmin, modeFlag, o.mode)
	}
	if err := o.operator.validate(); err != nil {
		return err
	}
	if err := join.pods.validate(); err != nil {
		return err
	}
	o.operator.pullConfig = join.pods.pullConfig
	return o.managed.read()
}

// checkOutsideName validates a name that also names a namespace on the management cluster.
func checkOutsideName(flag, name, namespace string) error {
	if why := validation.IsDNS1123Label(name); len(why) > 0 {
		return fmt.Errorf("--%s: %q is not a DNS label: %s", flag, name, strings.Join(why, "; "))
	}
	if over := len(namespace) - validation.DNS1123LabelMaxLength; over > 0 {
		return fmt.Errorf("--%s must be set to a name of at most %d characters: %s would be the name of its namespace, and is too long",
			flag, len(name)-over, namespace)
	}
	return nil
}

// namespace returns the namespace of the agent on the management cluster.
func (o *detachedOptions) namespace() string { return o.klusterlet().AgentNamespace() }

func (o *detachedOptions) klusterlet() *operatorv1.Klusterlet {
	k := &operatorv1.Klusterlet{ObjectMeta: metav1.ObjectMeta{Name: o.name}}
	k.Spec.DeployOption.Mode = o.apiMode()
	return k
}

// wanted returns the Klusterlet with only the fields that join sets.
func (o *joinOptions) wanted() *unstructured.Unstructured {
	spec := map[string]any{
		"clusterName":  o.clusterName,
		"deployOption": map[string]any{"mode": string(o.detached.apiMode())},
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
	own := map[string]any{"works": o.works.wanted()}
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
	secrets, err := asUnstructured(secretWith(namespace, operatorv1.ExternalManagedKubeconfig, o.detached.managed.data),
		secretWith(namespace, operatorv1.BootstrapHubKubeconfig, bootstrap))
	if err == nil && len(o.pods.pullConfig) > 0 {
		secrets = append(secrets, deploy.PullSecret(namespace, o.pods.pullConfig))
	}
	return secrets, err
}

func secretWith(namespace, name string, kubeconfig []byte) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string][]byte{operatorv1.KeyKubeconfig: kubeconfig},
	}
}

func asUnstructured(secrets ...*corev1.Secret) (all []*unstructured.Unstructured, err error) {
	for _, secret := range secrets {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(secret)
		if err != nil {
			return nil, err
		}
		unstructured.RemoveNestedField(object, "metadata", "creationTimestamp")
		all = append(all, &unstructured.Unstructured{Object: object})
	}
	return all, nil
}

// runDetached runs all checks before it creates anything, and can be run again wherever it was interrupted.
func (o *joinOptions) runDetached(ctx context.Context) error {
	known, err := o.way.try(ctx, o.clusterName, o.auth)
	if err != nil {
		return err
	}
	if o.serverURL == "" && !isLoopback(o.detached.managed.config.Host) {
		o.serverURL = o.detached.managed.config.Host
	}
	secrets, err := o.secrets()
	if err != nil {
		return err
	}
	if o.out.value == "yaml" {
		return o.printDetached(secrets)
	}
	m, err := managementCluster(ctx, o.global, &o.detached.outside)
	if err != nil {
		return err
	}
	if err := o.detached.managed.try(ctx, o.global); err != nil {
		return err
	}
	if o.detached.managed.cluster == m.uid {
		return fmt.Errorf("--%s and the management cluster are the same cluster: omit --%s to run the agent on the cluster itself, or choose "+
			"another --%s", managedKubeconfigFlag, modeFlag, managementContextFlag)
	}
	plan, err := m.planOperator(ctx, &o.detached.operator)
	if err != nil {
		return err
	}
	if err := m.mayRun(ctx, "klusterlets", o.detached.namespace(), "join a cluster"); err != nil {
		return err
	}
	if err := checkKlusterlet(ctx, m, o, known); err != nil {
		return err
	}
	if err := m.install(ctx, plan, "Klusterlet", &operatorv1.KlusterletList{}); err != nil {
		return err
	}
	if err := m.make(ctx, o.wanted()); err != nil {
		return err
	}
	if err := m.makeSecrets(ctx, "Klusterlet "+o.detached.name, secrets); err != nil {
		return err
	}
	if o.wait {
		if err := awaitKlusterlet(ctx, m, o.detached.name); err != nil {
			return err
		}
	}
	return o.sayDetached()
}

// printDetached prints what would be created. hub-operator creates the namespace of the secrets.
func (o *joinOptions) printDetached(secrets []*unstructured.Unstructured) error {
	if err := o.detached.operator.needImage(o.version); err != nil {
		return err
	}
	objects, err := o.detached.operator.objects()
	if err != nil {
		return err
	}
	objects = append(objects, o.wanted())
	return printManifests(o.Out, append(objects, secrets...))
}

// mayRun checks the permissions to create an object for hub-operator, and its secrets.
func (m *management) mayRun(ctx context.Context, resource, namespace, what string) error {
	var rights []authorizationv1.ResourceAttributes
	for _, verb := range []string{"get", "list", "create", "patch"} {
		rights = append(rights, authorizationv1.ResourceAttributes{Verb: verb, Group: operatorv1.GroupName, Resource: resource})
	}
	rights = append(rights, authorizationv1.ResourceAttributes{Verb: "get", Resource: "namespaces"})
	for _, verb := range []string{"get", "create", "patch"} {
		rights = append(rights, authorizationv1.ResourceAttributes{Verb: verb, Resource: "secrets", Namespace: namespace})
	}
	return m.need(ctx, rights, what, "have an admin of it run this command")
}

// make creates an object, or updates it if this program has created it.
func (m *management) make(ctx context.Context, o *unstructured.Unstructured) error {
	have, err := m.objects.Observe(ctx, o)
	if err == nil {
		err = m.objects.Apply(ctx, o, have)
	}
	if err != nil {
		return fmt.Errorf("creating %s: %w", remote.IDOf(o), m.explain(err))
	}
	if have == nil {
		_, _ = fmt.Fprintln(m.ErrOut, created(o))
	}
	return nil
}

// makeSecrets waits until hub-operator has created the namespace: hub-operator deletes only a namespace that it has created.
func (m *management) makeSecrets(ctx context.Context, of string, secrets []*unstructured.Unstructured) error {
	namespace := &corev1.Namespace{}
	name := secrets[0].GetNamespace()
	err := m.await(ctx, "hub-operator to create Namespace "+name+" for "+of, func(ctx context.Context) (bool, string, error) {
		err := m.Get(ctx, client.ObjectKey{Name: name}, namespace)
		switch {
		case err == nil && namespace.DeletionTimestamp.IsZero():
			return true, "", nil
		case err == nil:
			return false, "an earlier one is being deleted", nil
		case !apierrors.IsNotFound(err):
			return false, "", m.explain(err)
		}
		state, err := m.operatorState(ctx)
		return false, state, err
	})
	if err != nil {
		return err
	}
	for _, secret := range secrets {
		if err := m.make(ctx, secret); err != nil {
			return err
		}
	}
	return nil
}

// checkKlusterlet returns an error if a Klusterlet of that name exists and is for something else.
func checkKlusterlet(ctx context.Context, m *management, o *joinOptions, known bool) error {
	have := &operatorv1.Klusterlet{}
	err := m.Get(ctx, client.ObjectKey{Name: o.detached.name}, have)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		if known {
			m.warn("the hub already has a cluster %s: if it is another cluster, join with another name; if it is this cluster, from an "+
				"earlier join, delete it on the hub or approve the certificate request of the new agent", o.clusterName)
		}
		return checkKlusterletSecrets(ctx, m, o, "")
	case err != nil:
		return m.explain(err)
	}
	other := fmt.Sprintf("choose another name by --%s, or run kubectl hub unjoin --%s=%s --%[1]s=%[4]s --cluster-name %[5]s first", klusterletFlag, modeFlag,
		o.detached.mode, o.detached.name, cmp.Or(have.Spec.ClusterName, "NAME"))
	switch {
	case !have.DeletionTimestamp.IsZero():
		return fmt.Errorf("the Klusterlet %s is being deleted: wait until it is gone (kubectl hub get klusterlets shows what it waits for), or choose another name by --%s",
			o.detached.name, klusterletFlag)
	case have.Mode() != o.detached.apiMode():
		return fmt.Errorf("the Klusterlet %s has the mode %s, which cannot be changed: %s", o.detached.name, have.Mode(), other)
	case have.Spec.ClusterName != o.clusterName:
		return fmt.Errorf("the Klusterlet %s is for the cluster %q of its hub, not for %s: %s", o.detached.name, have.Spec.ClusterName, o.clusterName, other)
	case !byUs.Owns(have):
		return m.explain(&remote.NotOurs{Object: remote.IDOf(o.wanted()), Owner: byUs})
	}
	return checkKlusterletSecrets(ctx, m, o, other)
}

// checkKlusterletSecrets returns an error if the existing secrets are for another hub or cluster, even if the names are the same.
func checkKlusterletSecrets(ctx context.Context, m *management, o *joinOptions, other string) error {
	of, namespace := "Klusterlet "+o.detached.name, o.detached.namespace()
	if err := m.checkSecret(ctx, namespace, operatorv1.ExternalManagedKubeconfig, of, o.detached.managed.parsed.Server(), other); err != nil {
		return err
	}
	return m.checkSecret(ctx, namespace, operatorv1.BootstrapHubKubeconfig, of, o.way.server, other)
}

// checkSecret returns an error if a kubeconfig exists that is for another server or is not ours.
func (m *management) checkSecret(ctx context.Context, namespace, name, of, server, other string) error {
	secret := &corev1.Secret{}
	if err := m.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		return m.explain(client.IgnoreNotFound(err))
	}
	if now := serverOf(secret.Data[operatorv1.KeyKubeconfig]); now != "" && now != server {
		return fmt.Errorf("%s has a Secret %s for %s, not for %s%s. If it is the same cluster at another address, change the Secret %s/%[2]s",
			of, name, command.Printable(now), server, after(": ", other), namespace)
	}
	if !byUs.Owns(secret) {
		return m.explain(&remote.NotOurs{Object: remote.IDOf(secret), Owner: byUs})
	}
	return nil
}

func (o *joinOptions) sayDetached() error {
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
	}{Name: o.clusterName, Hub: o.way.server, Registration: o.auth, Mode: o.detached.mode, Klusterlet: o.detached.name,
		Namespace: o.detached.namespace(), Works: works, Joined: o.wait}
	if o.wait {
		return o.out.print(o.Out, result, "Cluster %s has joined the hub %s. Its agent runs on the management cluster, in the namespace %s.\n%s\n",
			o.clusterName, o.way.server, result.Namespace, worksSaid)
	}
	result.Next = acceptCommand(o.clusterName)
	return o.out.print(o.Out, result, "hub-operator runs the agent of cluster %s on the management cluster, in the namespace %s.\n%s\nOn the hub, accept it:\n\n"+
		"    %s\n\nkubectl hub get klusterlets shows what it waits for.\n", o.clusterName, result.Namespace, worksSaid, result.Next)
}

func acceptCommand(cluster string) string { return "kubectl hub accept --clusters " + cluster }
