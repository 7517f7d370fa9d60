// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install has the commands that prepare a hub: init, clean, get token and iam-role.
package install

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/irsa"
	"github.com/clusterhub/clusterhub/pkg/registration"
	remote "github.com/clusterhub/clusterhub/pkg/remote/apply"
)

const (
	// trialFor is the time that a hub may take to issue a certificate. A working hub takes about a second, and one whose kube-controller-manager has
	// just lost its leader about 20 seconds: a lease of 15 seconds must expire first.
	trialFor  = 30 * time.Second
	trialName = "kubectl-hub-trial"
)

type initOptions struct {
	tokenOptions
	kit.WaitFlags
	upstream bool
	// boundary is the ARN of the permissions boundary of the roles that the hub creates.
	boundary string

	// printOnly leaves the configuration of hub-controller-manager unchanged.
	printOnly bool

	// outside is for hubs whose servers run on another cluster.
	outside outsideHub
}

// NewInitCommand returns the command init.
func NewInitCommand(opts *kit.Options) *cobra.Command {
	o := &initOptions{tokenOptions: tokenOptions{Options: opts, out: kit.NewFormat("text", "json")}}
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Prepare a hub for clusters to join it, and print the join command",
		Long: "init grants bootstrap tokens their rights on a hub: with one, a cluster can create its ManagedCluster, in the default set, " +
			"and request a certificate. It tests whether the hub issues client certificates, creates a token and prints the join " +
			"command. It can be run again. hub-apiserver and hub-controller-manager must already run.\n\n" +
			"With --registration-auth=awsirsa, it configures hub-controller-manager to register clusters by AWS IAM, if its Deployment exists and nothing else " +
			"manages it; --print only prints the change.\n\n" +
			"With --mode=detached they need not run: hub-operator runs them on a management cluster, and makes the cluster of --hub-kubeconfig a hub, " +
			"which may have no nodes. init then waits until the hub serves its API.",
		Example: kit.Example(`
kubectl hub init --wait --context hub
kubectl hub init --registration-auth=awsirsa --hub-cluster-arn arn:aws:eks:eu-west-1:123456789012:cluster/hub
kubectl hub init --mode=detached --name blue --management-context mgmt --hub-kubeconfig blue.kubeconfig`),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.addTo(cmd)
	cmd.Flags().BoolVar(&o.upstream, "upstream-agents", false,
		"Let Open Cluster Management's agents join: bootstrap tokens can list and watch all certificate requests of the hub, and get every "+
			"ManagedCluster. hub-agent does not need this. Without the flag, init revokes these rights. For agents that have joined, hub-controller-manager has --agents-list-csrs.")
	cmd.Flags().BoolVar(&o.upstream, "agents-list-csrs", false, "Same as --upstream-agents.")
	_ = cmd.Flags().MarkDeprecated("agents-list-csrs", "use --upstream-agents") // the flag exists
	cmd.Flags().StringVar(&o.boundary, kit.BoundaryFlag, "", "ARN of the policy that the hub sets as the permissions boundary of the roles that it creates for "+
		"clusters, for "+kit.AuthAWS+". Defaults to that of the Deployment "+deploy.Manager+".")
	cmd.Flags().BoolVar(&o.printOnly, printFlag, false, "Only print how to run "+deploy.Manager+" with the drivers of --registration-auth. Without it, init changes "+
		"the flags of its Deployment and the annotation of its ServiceAccount for "+kit.AuthAWS+".")
	o.outside.addTo(cmd, opts.Version)
	o.AddWait(cmd.Flags(), "the hub serves its API and its controllers run")
	return cmd
}

func (o *initOptions) run(ctx context.Context) error {
	if err := errors.Join(o.validate(), o.ValidateTimeout()); err != nil {
		return err
	}
	if err := o.validateBoundary(); err != nil {
		return err
	}
	if err := o.outside.validate(o); err != nil {
		return err
	}
	ctx, cancel := o.Limit(ctx)
	defer cancel()
	if o.outside.IsOutside() {
		return o.runOutside(ctx)
	}
	h, err := o.awaitHub(ctx)
	if err != nil {
		return err
	}
	c, err := h.Client()
	if err != nil {
		return err
	}
	// The names are used for this alone, so existing objects are adopted, whatever prepared the hub before.
	objects := &remote.Applier{Client: c, Strategy: remote.ServerSideApply(deploy.ManagedBy), Adopt: true}
	for _, object := range deploy.Bootstrap(o.upstream) {
		have, err := objects.Get(ctx, object)
		if err == nil {
			err = objects.Apply(ctx, object, have)
		}
		if err != nil {
			return fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	o.deleteStaleRoles(ctx, c)
	if slices.Contains(o.auths, kit.AuthCSR) {
		if err := o.tryCertificate(ctx, h); err != nil {
			o.Warn("the hub issues no client certificates, so no cluster can join by %s: %v", kit.AuthCSR, err)
		}
	}
	if err := o.configureDrivers(ctx, h); err != nil {
		return err
	}
	return o.print(ctx, h, "The hub is prepared for clusters to join.\n\n")
}

// validateBoundary must run after validate, which determines the hub's ARN.
func (o *initOptions) validateBoundary() error {
	if o.boundary == "" {
		return nil
	}
	if !slices.Contains(o.auths, kit.AuthAWS) {
		return fmt.Errorf("--%s is for --registration-auth=%s", kit.BoundaryFlag, kit.AuthAWS)
	}
	hub, err := irsa.ParseClusterARN(o.hubARN)
	if err == nil {
		err = irsa.CheckBoundary(o.boundary, hub)
	}
	if err != nil {
		return fmt.Errorf("--%s: %w", kit.BoundaryFlag, err)
	}
	return nil
}

// upstreams is the name that earlier versions gave to the role of bootstrap tokens and to its binding. It is also the name of a role of upstream's
// operator, which has more rules.
const upstreams = "open-cluster-management:bootstrap"

// deleteStaleRoles deletes roles and bindings that an earlier init has created and this one does not. Objects that have other field managers, too, stay. An
// error is a warning only: the hub is prepared in any case.
func (o *initOptions) deleteStaleRoles(ctx context.Context, c client.Client) {
	remove := func(gone *unstructured.Unstructured, why, others string) {
		have := &metav1.PartialObjectMetadata{}
		have.SetGroupVersionKind(gone.GroupVersionKind())
		err := c.Get(ctx, client.ObjectKeyFromObject(gone), have)
		theirs := slices.DeleteFunc(slices.Clone(have.ManagedFields), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == deploy.ManagedBy })
		what := gone.GetKind() + " " + gone.GetName()
		switch {
		case apierrors.IsNotFound(err), err == nil && len(theirs) == len(have.ManagedFields):
			return
		case err == nil && len(theirs) > 0:
			o.Warn("%s has rules of an earlier kubectl hub init, %s", what, others)
			return
		case err == nil:
			err = kit.DeleteUnchanged(ctx, c, have)
		}
		if err != nil {
			o.Warn("%s of an earlier kubectl hub init was not deleted: %v", what, err)
			return
		}
		_, _ = fmt.Fprintf(o.ErrOut, "%s: of an earlier kubectl hub init%s\n", kit.Outcome(gone.GetKind(), gone.GetName(), "deleted"), why)
	}
	for _, kind := range []string{"ClusterRoleBinding", "ClusterRole"} {
		old := &unstructured.Unstructured{}
		old.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind))
		old.SetName(upstreams)
		remove(old, "", "with which upstream's agents cannot join: if this hub had Open Cluster Management's operator, delete it, and let "+
			"the operator create it again")
	}
	given := deploy.Bootstrap(o.upstream)
	for _, object := range slices.Backward(deploy.Bootstrap(true)) { // bindings before roles
		if !slices.ContainsFunc(given, func(g *unstructured.Unstructured) bool {
			return g.GroupVersionKind() == object.GroupVersionKind() && g.GetName() == object.GetName()
		}) {
			remove(object, ", which --upstream-agents keeps", "and of others: delete it, unless upstream's agents must be able to join")
		}
	}
}

// awaitHub waits, if requested, for the API and for the default set, because the controllers create it.
func (o *initOptions) awaitHub(ctx context.Context) (h *kit.HubClient, err error) {
	if !o.Wait {
		h, err = o.Hub()
		if err != nil {
			err = fmt.Errorf("%w%s", err, kit.Prefixed(": ", o.ownHub(ctx)))
		}
		return h, err
	}
	config, err := o.RESTConfig()
	if err != nil {
		return nil, err
	}
	h, err = kit.NewHub(config)
	if err != nil {
		return nil, err
	}
	return h, o.Await(ctx, "the hub "+config.Host, func(ctx context.Context) (bool, string, error) {
		if err := h.Check(); err != nil {
			return false, cmp.Or(o.ownHub(ctx), err.Error()), nil
		}
		_, err := h.Clusters.ClusterV1beta2().ManagedClusterSets().Get(ctx, cluster.DefaultSet, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, "hub-controller-manager has not created the set " + cluster.DefaultSet + " yet", nil
		}
		return err == nil, "", err
	})
}

// tryCertificate requests a client certificate, approves it, and checks that it is issued. The key is discarded.
func (o *initOptions) tryCertificate(ctx context.Context, h *kit.HubClient) (err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	request, err := cert.MakeCSRFromTemplate(key, &x509.CertificateRequest{Subject: pkix.Name{CommonName: trialName}})
	if err != nil {
		return err
	}
	requests := h.Kube.CertificatesV1().CertificateSigningRequests()
	csr, err := requests.Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: trialName + "-",
			Labels: map[string]string{deploy.LabelManagedBy: deploy.ManagedBy}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: request, SignerName: registration.SignerName, ExpirationSeconds: new(int32(600)),
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("testing it: %w", err)
	}
	defer func() {
		// Delete it even if the command was interrupted.
		if gone := requests.Delete(context.WithoutCancel(ctx), csr.Name, metav1.DeleteOptions{}); gone != nil {
			o.Warn("certificate request %s was not deleted: %v", csr.Name, gone)
		}
	}()
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Trial", Message: "kubectl hub init",
	})
	if _, err := requests.UpdateApproval(ctx, csr.Name, csr, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("testing it: %w", err)
	}
	patience := cmp.Or(o.TrialTimeout, trialFor)
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("none was issued within %s", patience))
	defer cancel()
	return o.Await(ctx, "a client certificate", func(ctx context.Context) (bool, string, error) {
		now, err := requests.Get(ctx, csr.Name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		for _, c := range now.Status.Conditions {
			if c.Type == certificatesv1.CertificateFailed || c.Type == certificatesv1.CertificateDenied {
				return false, "", fmt.Errorf("the request is %s: %s", c.Type, command.Printable(c.Message))
			}
		}
		return len(now.Status.Certificate) > 0, "the request is approved, but no certificate has been issued", nil
	})
}
