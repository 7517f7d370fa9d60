// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/clusterhub/clusterhub/pkg/inspect/diagnosis"
)

const (
	// APIServiceMissing means that the hub does not have one of our APIServices.
	APIServiceMissing diagnosis.ID = "APIServiceMissing"
	// APIServiceUnavailable means that the front cannot reach hub-apiserver by an APIService.
	APIServiceUnavailable diagnosis.ID = "APIServiceUnavailable"
	// APIServiceDistrusted means that the front does not trust hub-apiserver because of an APIService.
	APIServiceDistrusted diagnosis.ID = "APIServiceDistrusted"
	// APIServiceInsecure means that the front does not verify the server because of an APIService.
	APIServiceInsecure diagnosis.ID = "APIServiceInsecure"
	// CustomResourcesInTheWay means that CustomResourceDefinitions serve a group and version in place of hub-apiserver, or could.
	CustomResourcesInTheWay diagnosis.ID = "CustomResourcesInTheWay"
	// CertificateExpiring means that a certificate expires soon and is not renewed.
	CertificateExpiring diagnosis.ID = "CertificateExpiring"
)

const (
	turnAdmin = "an admin of the hub"
	// systemNamespace is the namespace of the components, and apiServer the name of one of them.
	systemNamespace, apiServer = "clusterhub-system", "hub-apiserver"
	// expiresSoon is the time before its expiry at which a certificate should have been renewed.
	expiresSoon = 14 * 24 * time.Hour
)

// Show returns the command that prints an object of artifacts/deploy, to be applied.
func Show(kind, namespace, name string) string {
	object := diagnosis.ShellWord(strings.ToLower(kind) + "/" + name)
	if namespace != "" {
		object += " -n " + diagnosis.ShellWord(namespace)
	}
	return "kubectl hub doctor --show " + object + " | kubectl apply --server-side --force-conflicts -f -"
}

func (h *Hub) expected(kinds ...string) (all []*unstructured.Unstructured) {
	for _, o := range h.Expected {
		if slices.Contains(kinds, o.GetKind()) {
			all = append(all, o)
		}
	}
	return all
}

// groups returns our API groups.
func (h *Hub) groups() (groups []string) {
	for _, o := range h.expected("APIService") {
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		if !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
	}
	return groups
}

func (h *Hub) apiService(name string) *apiregistrationv1.APIService {
	for i := range h.APIServices.Items {
		if h.APIServices.Items[i].Name == name {
			return &h.APIServices.Items[i]
		}
	}
	return nil
}

func (h *Hub) apiServices() (found []diagnosis.Finding) {
	if !h.APIServices.Seen {
		return h.unanswered()
	}
	for _, o := range h.expected("APIService") {
		name := o.GetName()
		s := h.apiService(name)
		f := diagnosis.Finding{Severity: diagnosis.Error, Object: "apiservice/" + name, Turn: turnAdmin}
		switch {
		case s == nil:
			f.ID, f.Cause = APIServiceMissing, "The hub has no such APIService, so it does not serve this version of the group."
			f.Fix = []string{Show("APIService", "", name)}
		case s.Spec.Service == nil: // customResources reports it
			continue
		default:
			why, since := unavailable(s)
			if why == "" {
				why = h.Paths[name]
			}
			if why == "" || isTrust(why) || h.hasForeignCA(s) {
				continue
			}
			f.ID, f.Since = APIServiceUnavailable, since
			f.Cause = fmt.Sprintf("The front does not reach hub-apiserver by the Service %s/%s: %s. %s", s.Spec.Service.Namespace, s.Spec.Service.Name, diagnosis.TrimPeriod(why),
				h.runs(apiServer))
			f.Fix = h.start(apiServer)
		}
		found = append(found, f)
	}
	return found
}

// unanswered finds APIs that are not served, for users who may not read APIServices.
func (h *Hub) unanswered() (found []diagnosis.Finding) {
	for _, o := range h.expected("APIService") {
		if why := h.Paths[o.GetName()]; why != "" {
			found = append(found, diagnosis.Finding{ID: APIServiceUnavailable, Severity: diagnosis.Error, Object: "apiservice/" + o.GetName(), Turn: turnAdmin,
				Cause: "The front does not serve this group and version: " + diagnosis.TrimPeriod(why) + ". " + h.runs(apiServer), Fix: h.start(apiServer)})
		}
	}
	return found
}

// unavailable returns why an APIService is not available, or "".
func unavailable(s *apiregistrationv1.APIService) (why string, since *metav1.Time) {
	for _, c := range s.Status.Conditions {
		if c.Type == apiregistrationv1.Available && c.Status != apiregistrationv1.ConditionTrue {
			return cmp.Or(c.Message, c.Reason, "it is not available"), &c.LastTransitionTime
		}
	}
	return "", nil
}

func isTrust(why string) bool { return strings.Contains(why, "x509:") }

// runs describes a component's Deployment.
func (h *Hub) runs(component string) string {
	d := h.deployment(component)
	switch {
	case d == nil && h.Deployments.Seen:
		return fmt.Sprintf("The hub has no Deployment %s in %s: it runs elsewhere, or not at all.", component, systemNamespace)
	case d == nil:
		return "You may not see whether it runs."
	}
	return fmt.Sprintf("The Deployment %s has %d available replicas of %d.", component, d.Status.AvailableReplicas, replicas(d))
}

// start returns the commands that may start a component again.
func (h *Hub) start(component string) []string {
	switch d := h.deployment(component); {
	case d == nil:
		return []string{"# start " + component + " where it runs, and check its log"}
	case replicas(d) == 0:
		return []string{fmt.Sprintf("kubectl -n %s scale deployment %s --replicas=1", systemNamespace, component)}
	case d.Status.AvailableReplicas > 0: // it runs, and is not available
		return []string{fmt.Sprintf("kubectl -n %s rollout restart deployment %s", systemNamespace, component)}
	}
	return []string{fmt.Sprintf("kubectl -n %s describe pods -l app.kubernetes.io/name=%s", systemNamespace, component)}
}

func (h *Hub) deployment(name string) *appsv1.Deployment {
	for i := range h.Deployments.Items {
		if h.Deployments.Items[i].Name == name {
			return &h.Deployments.Items[i]
		}
	}
	return nil
}

func replicas(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}

// hasForeignCA reports whether an APIService has a different CA than most of our APIServices with the same Service.
func (h *Hub) hasForeignCA(s *apiregistrationv1.APIService) bool {
	count := map[string]int{}
	for _, o := range h.expected("APIService") {
		if other := h.apiService(o.GetName()); other != nil && other.Spec.Service != nil && len(other.Spec.CABundle) > 0 && sameService(other, s) {
			count[string(other.Spec.CABundle)]++
		}
	}
	most := 0
	for _, n := range count {
		most = max(most, n)
	}
	return len(s.Spec.CABundle) > 0 && count[string(s.Spec.CABundle)] < most
}

func sameService(a, b *apiregistrationv1.APIService) bool {
	return a.Spec.Service.Namespace == b.Spec.Service.Namespace && a.Spec.Service.Name == b.Spec.Service.Name
}

// authorities checks the certificate authorities by which the front trusts hub-apiserver.
func (h *Hub) authorities() (found []diagnosis.Finding) {
	for _, o := range h.expected("APIService") {
		s := h.apiService(o.GetName())
		if s == nil || s.Spec.Service == nil {
			continue
		}
		f := diagnosis.Finding{ID: APIServiceDistrusted, Severity: diagnosis.Error, Object: "apiservice/" + s.Name, Turn: turnAdmin, Fix: []string{trustFix(s.Name)}}
		why, since := unavailable(s)
		ends, problem := bundleExpiry(s.Spec.CABundle)
		switch {
		case s.Spec.InsecureSkipTLSVerify:
			f.ID, f.Severity = APIServiceInsecure, diagnosis.Warning
			f.Cause = "It has insecureSkipTLSVerify: the front sends the users' requests to any server at the address of the Service, without verifying it."
			f.Fix = []string{fmt.Sprintf(`kubectl patch apiservice %s --type=json -p '[{"op":"remove","path":"/spec/insecureSkipTLSVerify"}]'`, s.Name)}
		case problem != "":
			f.Cause = "Its caBundle " + problem + ", so the front does not trust hub-apiserver."
		case ends.Before(h.Now):
			f.Cause = fmt.Sprintf("The certificate in its caBundle expired on %s.", ends.UTC().Format(time.RFC3339))
		case isTrust(why):
			f.Cause, f.Since = "The front does not trust the certificate of hub-apiserver with the caBundle "+Hash(s.Spec.CABundle)+": "+diagnosis.TrimPeriod(why)+".", since
		case h.hasForeignCA(s) && why != "":
			f.Cause = "Its caBundle " + Hash(s.Spec.CABundle) + " differs from the caBundle of the other APIServices of the same Service, and the front reports: " + diagnosis.TrimPeriod(why) + "."
			f.Since = since
		case ends.Before(h.Now.Add(expiresSoon)):
			f.ID, f.Severity = CertificateExpiring, diagnosis.Warning
			f.Cause = fmt.Sprintf("The certificate in its caBundle expires on %s. hub-apiserver renews it long before, if it may write APIServices and its Secret.",
				ends.UTC().Format(time.RFC3339))
			f.Fix = h.start(apiServer)
		default:
			continue
		}
		found = append(found, f)
	}
	return found
}

// trustFix returns the command that copies the CA bundle of hub-apiserver. hub-apiserver does that itself if it has permission.
func trustFix(name string) string {
	return fmt.Sprintf(`CA=$(kubectl -n %s get secret hub-apiserver-serving-ca -o jsonpath='{.data.ca-bundle\.crt}') && `+
		`kubectl patch apiservice %s --type=merge -p "{\"spec\":{\"caBundle\":\"$CA\"}}"`, systemNamespace, name)
}

// bundleExpiry returns when the last certificate of a bundle expires.
func bundleExpiry(bundle []byte) (last time.Time, problem string) {
	if len(bytes.TrimSpace(bundle)) == 0 {
		return last, "is empty"
	}
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return last, "has a certificate that cannot be read"
		}
		if c.NotAfter.After(last) {
			last = c.NotAfter
		}
	}
	if last.IsZero() {
		return last, "has no certificate in PEM"
	}
	return last, ""
}

// Hash returns a short hash of long data, such as a bundle of certificates.
func Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:6])
}

// customResources finds definitions that hide our objects, or are hidden by them.
func (h *Hub) customResources() (found []diagnosis.Finding) {
	for _, o := range h.expected("APIService") {
		if s := h.apiService(o.GetName()); s != nil && s.Spec.Service == nil {
			found = append(found, diagnosis.Finding{ID: CustomResourcesInTheWay, Severity: diagnosis.Error, Object: "apiservice/" + s.Name, Turn: turnAdmin,
				Cause: "The front serves this group and version from CustomResourceDefinitions, not from hub-apiserver: objects written to one are not visible in the other.",
				Fix:   append(h.removeCRDs(o), Show("APIService", "", s.Name))})
		}
	}
	if len(found) > 0 {
		return found
	}
	for _, name := range h.CRDs.Items {
		_, group, _ := strings.Cut(name, ".")
		// A cluster that is also managed has ClusterClaims and work records of its agent.
		if slices.Contains(h.groups(), group) && !slices.Contains(ofAgents, name) {
			found = append(found, diagnosis.Finding{ID: CustomResourcesInTheWay, Severity: diagnosis.Warning, Object: "customresourcedefinition/" + name, Turn: turnAdmin,
				Cause: "The hub has a CustomResourceDefinition of a group that hub-apiserver serves. Its objects are hidden now, and replace the hub's " +
					"when an APIService is deleted. docs/operating.md describes how to move them.", Fix: []string{"kubectl delete crd " + diagnosis.ShellWord(name)}})
		}
	}
	return found
}

// ofAgents are the CustomResourceDefinitions that agents of Open Cluster Management have on their cluster.
var ofAgents = []string{"clusterclaims.cluster.open-cluster-management.io", "appliedmanifestworks.work.open-cluster-management.io"}

func (h *Hub) removeCRDs(apiService *unstructured.Unstructured) (fix []string) {
	ours, _, _ := unstructured.NestedString(apiService.Object, "spec", "group")
	fix = append(fix, "# save the objects of these CustomResourceDefinitions first, as docs/operating.md describes: they are deleted with them")
	for _, name := range h.CRDs.Items {
		if _, group, _ := strings.Cut(name, "."); group == ours {
			fix = append(fix, "kubectl delete crd "+name)
		}
	}
	return fix
}
