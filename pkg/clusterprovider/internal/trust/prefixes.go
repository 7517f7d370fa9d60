// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"context"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/rights"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
)

// Separators are the characters that end a prefix: the part before belongs to the provider, and the part after is a name that it assigns.
const Separators = ":/#@|"

// fitToTrust returns an error if a cluster may not trust the OIDC provider of a request that it does not trust yet. The requester controls which
// names the issuer assigns, so these must not be names that other users of the cluster have already.
func (r *Issuers) fitToTrust(ctx context.Context, ar *v1alpha1.AccessRequest, cluster *v1alpha1.Cluster, t client.Reader) error {
	r.fit.Delete(ar.UID)
	if trustRank(ar) == 0 {
		return nil
	}
	provider, at := trustOf(ar), field.NewPath("spec", "oidc")
	if !givesRoles(ar.Spec.OIDC) {
		return hub.Because(v1alpha1.ReasonConfigurationProblem, fmt.Errorf(
			"%s: no subject gets a role, so the issuer is not trusted: specify subjects and roleRefs", at.Child("roleBindings")))

	}
	if !r.AnyPrefix {
		for name, prefix := range map[string]string{"usernamePrefix": *provider.UsernamePrefix, "groupsPrefix": *provider.GroupsPrefix} {
			if err := prefixProblem(prefix); err != "" {
				return hub.Because(hub.ReasonOIDCPrefixRefused, fmt.Errorf("%s: %q %s", at.Child(name), prefix, err))
			}
		}
	}
	used, ours, err := foreignSubject(ctx, t, r.Identity, &provider)
	if err != nil {
		return fmt.Errorf("reading the bindings of the cluster: %w", err)
	}
	if ours {
		return hub.Because(hub.ReasonOIDCConflict, fmt.Errorf("%s: the cluster still grants rights to names with its usernamePrefix or "+
			"groupsPrefix that another issuer assigned, for another AccessRequest: use another name or other prefixes, or wait "+
			"until that request is deleted or its new spec is granted", at))

	}
	if used == "" {
		used, err = r.verbatimSubject(ctx, ar, cluster, &provider)
		if err != nil {
			return err
		}
	}
	if used != "" {
		ctrl.LoggerFrom(ctx).Info("Not trusting an OIDC provider: bindings of other owners grant rights to names with its prefix", "binding", used)
		return hub.Because(hub.ReasonOIDCPrefixRefused, fmt.Errorf("%s: bindings of other owners in the cluster already grant rights to names "+
			"with its usernamePrefix or groupsPrefix: use another name or other prefixes, or have an admin of the cluster delete "+
			"these bindings", at))

	}
	r.fit.Store(ar.UID, names(&provider))
	return nil
}

// verbatimSubject returns the name of an AccessRequest of the same cluster that grants rights to an exact name with the prefixes, by ::, and that has
// a different issuer; or "".
func (r *Issuers) verbatimSubject(
	ctx context.Context, ar *v1alpha1.AccessRequest, cluster *v1alpha1.Cluster, provider *v1alpha1.OIDCProviderConfig,
) (string, error) {
	list := &v1alpha1.AccessRequestList{}
	if err := r.client.List(ctx, list, client.MatchingFields{hub.ByCluster: client.ObjectKeyFromObject(cluster).String()}); err != nil {
		return "", err
	}
	for i := range list.Items {
		other := &list.Items[i]
		if other.UID == ar.UID || other.Spec.OIDC == nil || other.Spec.OIDC.Issuer == provider.Issuer || other.Status.IsDenied() {
			continue
		}
		for _, binding := range other.Spec.OIDC.RoleBindings {
			var asTheyAre []rbacv1.Subject
			for _, subject := range binding.Subjects {
				if name, found := strings.CutPrefix(subject.Name, rights.Verbatim); found {
					subject.Name = name
					asTheyAre = append(asTheyAre, subject)
				}
			}
			if anyPrefixed(asTheyAre, provider) {
				return "of AccessRequest " + client.ObjectKeyFromObject(other).String(), nil
			}
		}
	}
	return "", nil
}

// givesRoles reports whether a request grants a role to any subject.
func givesRoles(config *v1alpha1.OIDCConfig) bool {
	for _, binding := range config.RoleBindings {
		if len(binding.Subjects) > 0 && len(binding.RoleRefs) > 0 {
			return true
		}
	}
	return false
}

// prefixProblem returns why a prefix does not separate the names of a provider from those of the cluster, or "".
func prefixProblem(prefix string) string {
	switch {
	case prefix == "":
		return "allows the issuer to assign any name in the cluster: omit the field, or end it with a colon"
	case !strings.ContainsAny(prefix[len(prefix)-1:], Separators):
		return "does not end with one of " + strings.Join(strings.Split(Separators, ""), " ") +
			", so names with it may conflict with those of other users: add a colon"
	case strings.HasPrefix(prefix, "system:"):
		return "begins with system:, which is reserved for the cluster: use another prefix"
	}
	return ""
}

// foreignSubject returns the name of a binding that grants rights to names with the prefixes, unless this provider created it for names that the same
// issuer assigns in the same way; or "". An empty prefix matches every name. It also reports whether this provider created it: the request may have
// changed since, so the binding itself records which names are in it. Bindings of earlier versions do not.
func foreignSubject(
	ctx context.Context, t client.Reader, own hub.Identity, provider *v1alpha1.OIDCProviderConfig,
) (binding string, ours bool, err error) {
	clusterRoleBindings, roleBindings := &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleBindingList{}
	if err := t.List(ctx, clusterRoleBindings); err != nil {
		return "", false, err
	}
	if err := t.List(ctx, roleBindings); err != nil {
		return "", false, err
	}
	visit := func(object client.Object, subjects []rbacv1.Subject) {
		_, made := object.GetLabels()[own.NameLabel()]
		given, said := object.GetAnnotations()[own.NamesAnnotation()]
		same := made && (!said || given == names(provider))
		if binding == "" && !same && anyPrefixed(subjects, provider) {
			binding, ours = apply.IDOf(object).String(), made
		}
	}
	for i := range clusterRoleBindings.Items {
		visit(&clusterRoleBindings.Items[i], clusterRoleBindings.Items[i].Subjects)
	}
	for i := range roleBindings.Items {
		visit(&roleBindings.Items[i], roleBindings.Items[i].Subjects)
	}
	return binding, ours, nil
}

// anyPrefixed reports whether an issuer could assign the name of one of these subjects. Names that begin with system: are reserved for the cluster.
func anyPrefixed(subjects []rbacv1.Subject, provider *v1alpha1.OIDCProviderConfig) bool {
	for _, subject := range subjects {
		prefix := provider.UsernamePrefix
		switch subject.Kind {
		case rbacv1.UserKind:
		case rbacv1.GroupKind:
			prefix = provider.GroupsPrefix
		default:
			continue
		}
		if strings.HasPrefix(subject.Name, *prefix) && !strings.HasPrefix(subject.Name, "system:") {
			return true
		}
	}
	return false
}
