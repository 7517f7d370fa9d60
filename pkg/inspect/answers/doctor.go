// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"time"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/inspect/doctor"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// GVR returns a resource.
func GVR(group, version, name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: name}
}

const (
	rbacGroup      = "rbac.authorization.k8s.io"
	admissionGroup = "admissionregistration.k8s.io"
)

// RightsResources are the resources of RBAC, by kind.
var RightsResources = map[string]schema.GroupVersionResource{
	"ClusterRole": GVR(rbacGroup, "v1", "clusterroles"), "ClusterRoleBinding": GVR(rbacGroup, "v1", "clusterrolebindings"),
	"Role": GVR(rbacGroup, "v1", "roles"), "RoleBinding": GVR(rbacGroup, "v1", "rolebindings"),
}

var policyResources = map[string]schema.GroupVersionResource{
	"ValidatingAdmissionPolicy":        GVR(admissionGroup, "v1", "validatingadmissionpolicies"),
	"ValidatingAdmissionPolicyBinding": GVR(admissionGroup, "v1", "validatingadmissionpolicybindings"),
}

// HubOptions are the options for the diagnosis of a hub.
type HubOptions struct {
	// Patience is the time for which something may wait for a person.
	Patience time.Duration
	// Version is the version of this program.
	Version string
	// DryRun allows a write by dry run.
	DryRun bool
}

// Hub diagnoses a hub.
func (r *Reader) Hub(ctx context.Context, o HubOptions) (*doctor.Report, error) {
	expected, err := deploy.Hub{}.Objects()
	if err != nil {
		return nil, err
	}
	h := &doctor.Hub{Skew: r.Skew, SkewWithin: r.Within, Patience: o.Patience, Expected: expected, Version: o.Version, Serving: r.Serving, Authorities: r.Authorities}
	h.APIServices = Typed[apiregistrationv1.APIService](r.List(ctx, apiServicesResource, "", metav1.ListOptions{}))
	h.Paths = r.paths(ctx, expected)
	crds, seen := r.List(ctx, GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions"), "", metav1.ListOptions{})
	h.CRDs.Seen = seen
	for i := range crds {
		h.CRDs.Items = append(h.CRDs.Items, crds[i].GetName())
	}
	h.Rights = r.Named(ctx, OfKinds(expected, doctor.RightsKinds), RightsResources)
	h.Policies = r.Named(ctx, OfKinds(expected, doctor.PolicyKinds), policyResources)
	accounts := r.Named(ctx, OfKinds(expected, []string{"ServiceAccount"}), map[string]schema.GroupVersionResource{"ServiceAccount": GVR("", "v1", "serviceaccounts")})
	h.Accounts.Seen = accounts.Seen
	for _, a := range accounts.Items {
		h.Accounts.Items = append(h.Accounts.Items, a.GetNamespace()+"/"+a.GetName())
	}
	h.Leases = Typed[coordinationv1.Lease](r.List(ctx, GVR("coordination.k8s.io", "v1", "leases"), deploy.ManagerNamespace, metav1.ListOptions{}))
	h.Deployments = Typed[appsv1.Deployment](r.List(ctx, GVR("apps", "v1", "deployments"), deploy.ManagerNamespace, metav1.ListOptions{}))
	h.Webhooks = r.webhooks(ctx)
	h.Requests = Typed[certificatesv1.CertificateSigningRequest](r.List(ctx, GVR("certificates.k8s.io", "v1", "certificatesigningrequests"), "",
		metav1.ListOptions{LabelSelector: registration.ClusterNameLabel}))
	h.FrontReady = r.ready(ctx)
	if len(h.Paths) == len(r.unanswered(h.Paths)) {
		r.Unseen = append(r.Unseen, "clusters, sets, bindings and storage: hub-apiserver does not respond")
	} else {
		h.Clusters = Typed[clusterv1.ManagedCluster](r.List(ctx, GVR(clusterv1.GroupName, "v1", "managedclusters"), "", metav1.ListOptions{}))
		h.Sets = Typed[v1beta1.ManagedClusterSet](r.List(ctx, GVR(clusterv1.GroupName, "v1beta1", "managedclustersets"), "", metav1.ListOptions{}))
		h.Bindings = Typed[v1beta2.ManagedClusterSetBinding](r.List(ctx, GVR(clusterv1.GroupName, "v1beta2", "managedclustersetbindings"), "", metav1.ListOptions{}))
		h.Storage = r.storage(ctx, o.DryRun)
	}
	h.Now = r.Now() // after all reads: times of renewals are not in the future
	return h.Check(), nil
}

// OfKinds returns the objects of the given kinds.
func OfKinds(objects []*unstructured.Unstructured, kinds []string) (all []*unstructured.Unstructured) {
	for _, o := range objects {
		if slices.Contains(kinds, o.GetKind()) {
			all = append(all, o)
		}
	}
	return all
}

// paths checks each group and version of ours through the front.
func (r *Reader) paths(ctx context.Context, expected []*unstructured.Unstructured) map[string]string {
	services := OfKinds(expected, []string{"APIService"})
	answers, forbidden := make([]string, len(services)), make([]string, len(services))
	each(len(services), func(i int) {
		group, _, _ := unstructured.NestedString(services[i].Object, "spec", "group")
		version, _, _ := unstructured.NestedString(services[i].Object, "spec", "version")
		path := "/apis/" + group + "/" + version
		response, body, err := r.Raw(ctx, path)
		switch {
		case err != nil:
			answers[i] = command.ErrorLine(err)
		case response.StatusCode == http.StatusForbidden:
			forbidden[i] = path + ": you may not get it"
		case response.StatusCode != http.StatusOK:
			text := strings.TrimSpace(string(body[:min(len(body), 300)]))
			answers[i] = fmt.Sprintf("GET %s returned %d %s", path, response.StatusCode, command.Printable(text))
		}
	})
	paths := map[string]string{}
	for i := range services {
		paths[services[i].GetName()] = answers[i]
		if forbidden[i] != "" {
			r.Unseen = append(r.Unseen, forbidden[i])
		}
	}
	return paths
}

func (r *Reader) unanswered(paths map[string]string) (names []string) {
	for name, why := range paths {
		if why != "" {
			names = append(names, name)
		}
	}
	return names
}

// ready returns the failed checks of /readyz of the front.
func (r *Reader) ready(ctx context.Context) string {
	response, body, err := r.Raw(ctx, "/readyz?verbose")
	switch {
	case err != nil:
		return command.ErrorLine(err)
	case response.StatusCode == http.StatusForbidden:
		r.Unseen = append(r.Unseen, "/readyz of the front: you may not get it")
		return ""
	case response.StatusCode == http.StatusOK:
		return ""
	}
	var failed []string
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "[-]") {
			failed = append(failed, command.Printable(strings.TrimSpace(line)))
		}
	}
	return fmt.Sprintf("/readyz returned %d %s", response.StatusCode, strings.Join(failed, ", "))
}

// maxQuota is the largest quota that etcd recommends for its database.
const maxQuota = 8 << 30

var storageSize = regexp.MustCompile(`(?m)^apiserver_storage_size_bytes\{[^}]*\} ([0-9.e+]+)$`)

// storage tries a write by a dry run, and reads the size of the front's etcd.
func (r *Reader) storage(ctx context.Context, dryRun bool) (s doctor.Storage) {
	if dryRun {
		s.Refused = r.storageFull(ctx)
	} else {
		r.Unseen = append(r.Unseen, "free storage for writes: kubectl hub doctor checks it with a dry run")
	}
	s.Size = r.etcdSize(ctx)
	if s.Size > 0 {
		s.Quota = maxQuota
	}
	return s
}

// etcdSize returns the size in bytes of the largest database behind the front, or 0 if the user may not see it.
func (r *Reader) etcdSize(ctx context.Context) (largest int64) {
	response, body, err := r.Raw(ctx, "/metrics")
	if err != nil || response.StatusCode != http.StatusOK {
		r.Unseen = append(r.Unseen, "the size of the etcd of the front: you may not get /metrics")
		return 0
	}
	for _, match := range storageSize.FindAllSubmatch(body, -1) {
		if size, err := strconv.ParseFloat(string(match[1]), 64); err == nil {
			largest = max(largest, int64(size))
		}
	}
	return largest
}

// storageFull returns the error with which the hub rejects a dry run because its storage is full, or "".
func (r *Reader) storageFull(ctx context.Context) string {
	set := &unstructured.Unstructured{Object: map[string]any{"apiVersion": v1beta2.SchemeGroupVersion.String(), "kind": "ManagedClusterSet",
		"metadata": map[string]any{"generateName": "doctor-dry-run-"}}}
	_, err := r.Dynamic.Resource(GVR(clusterv1.GroupName, "v1beta2", "managedclustersets")).Create(ctx, set, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status) && status.Status().Code == http.StatusInsufficientStorage:
		return command.ErrorLine(err)
	case apierrors.IsForbidden(err):
		r.Unseen = append(r.Unseen, "free storage for writes: you may not create sets, not even in a dry run")
	case err != nil:
		r.Unseen = append(r.Unseen, "free storage for writes: a dry run of a set returned "+command.ErrorLine(err))
	}
	return ""
}

// webhooks returns all webhooks of the server, with the state of their Services.
func (r *Reader) webhooks(ctx context.Context) (all []doctor.Webhook) {
	for _, name := range []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"} {
		items, _ := r.List(ctx, GVR(admissionGroup, "v1", name), "", metav1.ListOptions{})
		// The fields that are read here are the same in both kinds.
		for _, c := range Typed[admissionregistrationv1.ValidatingWebhookConfiguration](items, true).Items {
			for i := range c.Webhooks {
				all = append(all, r.webhook(ctx, strings.TrimSuffix(name, "s"), c.Name, i, &c.Webhooks[i]))
			}
		}
	}
	return all
}

func (r *Reader) webhook(ctx context.Context, kind, configuration string, index int, w *admissionregistrationv1.ValidatingWebhook) doctor.Webhook {
	out := doctor.Webhook{Resource: kind, Configuration: configuration, Index: index, Name: w.Name, Rules: w.Rules,
		Fails:    w.FailurePolicy == nil || *w.FailurePolicy == admissionregistrationv1.Fail,
		Narrowed: hasSelector(w.NamespaceSelector) || hasSelector(w.ObjectSelector) || len(w.MatchConditions) > 0}
	if w.ClientConfig.Service == nil || !out.Fails {
		return out
	}
	out.Namespace, out.Service = w.ClientConfig.Service.Namespace, w.ClientConfig.Service.Name
	service, err := r.Get(ctx, GVR("", "v1", "services"), out.Namespace, out.Service)
	if err != nil && !apierrors.IsNotFound(err) {
		r.Miss("the Service of the webhook "+w.Name, err)
		return out
	}
	out.HasService = err == nil
	if !out.HasService {
		out.Seen = true
		return out
	}
	if serviceType, _, _ := unstructured.NestedString(service.Object, "spec", "type"); serviceType == "ExternalName" {
		return out // the Service cannot be seen
	}
	items, seen := r.List(ctx, GVR("discovery.k8s.io", "v1", "endpointslices"), out.Namespace, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + out.Service})
	out.Seen = seen
	for _, slice := range Typed[discoveryv1.EndpointSlice](items, seen).Items {
		for _, e := range slice.Endpoints {
			out.HasEndpoints = out.HasEndpoints || e.Conditions.Ready == nil || *e.Conditions.Ready
		}
	}
	return out
}

func hasSelector(s *metav1.LabelSelector) bool {
	return s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0
}

func jsonInto(data []byte, into any) error { return json.Unmarshal(data, into) }
