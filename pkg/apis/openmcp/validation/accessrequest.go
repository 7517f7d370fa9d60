// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"regexp"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
)

const (
	kindRole        = "Role"
	kindClusterRole = "ClusterRole"
	// shortTTL is too short to do much in: a request for less is most likely a mistake.
	shortTTL = time.Minute
)

var issuer = regexp.MustCompile(`^https?://[^\s/$.?#].[^\s]*$`)

// ValidateAccessRequest checks a new request.
func ValidateAccessRequest(r *openmcp.AccessRequest) field.ErrorList {
	at := field.NewPath("spec")
	errs := append(validateMeta(&r.ObjectMeta, true), validateAccessRequestSpec(&r.Spec, 0, at)...)
	if r.Spec.TTL != nil && r.Spec.TTL.Duration <= 0 {
		errs = append(errs, field.Invalid(at.Child("ttl"), r.Spec.TTL.String(),
			"must be above 0, such as 24h: the request would have expired already"))
	}
	return errs
}

// ValidateAccessRequestUpdate checks a change of a request. Any ttl is right: one that has passed ends the access.
func ValidateAccessRequestUpdate(r, old *openmcp.AccessRequest) field.ErrorList {
	at := field.NewPath("spec")
	errs := validateMetaUpdate(&r.ObjectMeta, &old.ObjectMeta)
	errs = append(errs, validateFixed(r.Spec.ClusterRef, old.Spec.ClusterRef, "clusterRef", at)...)
	errs = append(errs, validateFixed(r.Spec.RequestRef, old.Spec.RequestRef, "requestRef", at)...)
	return append(errs, validateAccessRequestSpec(&r.Spec, longestEntries(&old.Spec), at)...)
}

// ValidateAccessRequestStatusUpdate checks a change of a request's status.
func ValidateAccessRequestStatusUpdate(r, old *openmcp.AccessRequest) field.ErrorList {
	errs := validateMetaUpdate(&r.ObjectMeta, &old.ObjectMeta)
	return append(errs, validateConditions(r.Status.Conditions, field.NewPath("status", "conditions"))...)
}

// AccessRequestWarnings tells what is not as it may seem about a request, at a time.
func AccessRequestWarnings(r *openmcp.AccessRequest, now time.Time) []string {
	var warnings []string
	if ttl := r.Spec.TTL; ttl != nil {
		created := r.CreationTimestamp.Time
		switch {
		case !created.IsZero() && !now.Before(created.Add(ttl.Duration)):
			warnings = append(warnings, fmt.Sprintf("spec.ttl: %s after the creation has already passed, so the request is deleted now", ttl.Duration))
		case ttl.Duration < shortTTL:
			warnings = append(warnings, fmt.Sprintf("spec.ttl: the request is deleted %s after its creation, and its access with it", ttl.Duration))
		}
	}
	warn := func(refs []openmcp.RoleRef, at *field.Path) {
		for i, ref := range refs {
			if ref.Kind == kindClusterRole && ref.Namespace != "" {
				warnings = append(warnings, fmt.Sprintf("%s: is ignored: a ClusterRole is granted in the whole cluster",
					at.Index(i).Child("namespace")))
			}
		}
	}
	if token := r.Spec.Token; token != nil {
		warn(token.RoleRefs, field.NewPath("spec", "token", "roleRefs"))
	}
	if oidc := r.Spec.OIDC; oidc != nil {
		for i, b := range oidc.RoleBindings {
			warn(b.RoleRefs, field.NewPath("spec", "oidc", "roleBindings").Index(i).Child("roleRefs"))
		}
	}
	return warnings
}

// validateAccessRequestSpec validates a spec. Lists of its rules can have as many entries as stored ones, even above the bound.
func validateAccessRequestSpec(spec *openmcp.AccessRequestSpec, stored int, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if (spec.Token == nil) == (spec.OIDC == nil) {
		errs = append(errs, field.Invalid(at, field.OmitValueType{}, "exactly one of spec.token or spec.oidc must be set"))
	}
	if spec.Token != nil {
		errs = append(errs, validatePermissions(spec.Token.Permissions, stored, at.Child("token", "permissions"))...)
		errs = append(errs, validateRoleRefs(spec.Token.RoleRefs, at.Child("token", "roleRefs"))...)
	}
	if spec.OIDC != nil {
		errs = append(errs, validateOIDC(spec.OIDC, stored, at.Child("oidc"))...)
	}
	return errs
}

func validateOIDC(o *openmcp.OIDCConfig, stored int, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if o.Name == openmcp.OIDCProviderSystem {
		errs = append(errs, field.Invalid(at.Child("name"), o.Name, "'system' is a reserved string and may not be used as OIDC provider name"))
	}
	for _, message := range validation.IsDNS1123Subdomain(o.Name) {
		errs = append(errs, field.Invalid(at.Child("name"), o.Name, message))
	}
	if !issuer.MatchString(o.Issuer) {
		errs = append(errs, field.Invalid(at.Child("issuer"), o.Issuer, "must be a URL, such as https://oidc.example.com"))
	}
	bindings := at.Child("roleBindings")
	if o.RoleBindings == nil {
		errs = append(errs, field.Required(bindings, "must list the roles to give to users and groups, or be []"))
	}
	for i, b := range o.RoleBindings {
		if b.Subjects == nil {
			errs = append(errs, field.Required(bindings.Index(i).Child("subjects"), "must list the users, groups and ServiceAccounts that get the roles, or be []"))
		}
		for j := range b.Subjects {
			errs = append(errs, validateSubject(&b.Subjects[j], bindings.Index(i).Child("subjects").Index(j))...)
		}
		if b.RoleRefs == nil {
			errs = append(errs, field.Required(bindings.Index(i).Child("roleRefs"), "must name the roles, or be []"))
		}
		errs = append(errs, validateRoleRefs(b.RoleRefs, bindings.Index(i).Child("roleRefs"))...)
	}
	return append(errs, validatePermissions(o.Roles, stored, at.Child("roles"))...)
}

// validateSubject checks what every cluster does of a subject of a binding.
func validateSubject(s *rbacv1.Subject, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch s.Kind {
	case rbacv1.UserKind, rbacv1.GroupKind:
	case rbacv1.ServiceAccountKind:
		if s.Namespace == "" {
			errs = append(errs, field.Required(at.Child("namespace"), "must be the namespace of the ServiceAccount"))
		}
	case "":
		errs = append(errs, field.Required(at.Child("kind"), "must be User, Group or ServiceAccount"))
	default:
		errs = append(errs, field.NotSupported(at.Child("kind"), s.Kind, []string{rbacv1.UserKind, rbacv1.GroupKind, rbacv1.ServiceAccountKind}))
	}
	if s.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), "must name the user, group or ServiceAccount that gets the roles"))
	}
	return errs
}

func validateRoleRefs(refs []openmcp.RoleRef, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, ref := range refs {
		at := at.Index(i)
		errs = append(errs, validateRoleName(ref.Name, at.Child("name"))...)
		switch ref.Kind {
		case kindClusterRole:
		case kindRole:
			if ref.Namespace == "" {
				errs = append(errs, field.Required(at.Child("namespace"), "namespace must be set if kind is 'Role'"))
			} else {
				errs = append(errs, validateNamespace(ref.Namespace, at.Child("namespace"))...)
			}
		case "":
			errs = append(errs, field.Required(at.Child("kind"), "must be Role or ClusterRole"))
		default:
			errs = append(errs, field.NotSupported(at.Child("kind"), ref.Kind, []string{kindRole, kindClusterRole}))
		}
	}
	return errs
}

func validatePermissions(permissions []openmcp.PermissionsRequest, stored int, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, p := range permissions {
		at := at.Index(i)
		errs = append(errs, validateRoleName(p.Name, at.Child("name"))...)
		if p.Namespace != "" {
			errs = append(errs, validateNamespace(p.Namespace, at.Child("namespace"))...)
		}
		if p.Rules == nil {
			errs = append(errs, field.Required(at.Child("rules"), "must list the rights to grant, or be []"))
		}
		for j := range p.Rules {
			errs = append(errs, validateRule(&p.Rules[j], p.Namespace != "", stored, at.Child("rules").Index(j))...)
		}
	}
	return errs
}

// validateRule checks what every cluster does of a rule of a role.
func validateRule(r *rbacv1.PolicyRule, namespaced bool, stored int, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, list := range entriesOf(r) {
		errs = append(errs, bounds.Count(at.Child(name), len(list), stored, maxRuleEntries)...)
	}
	if len(r.Verbs) == 0 {
		errs = append(errs, field.Required(at.Child("verbs"), "must contain at least one verb"))
	}
	if len(r.NonResourceURLs) > 0 {
		if namespaced {
			errs = append(errs, field.Invalid(at.Child("nonResourceURLs"), r.NonResourceURLs, "cannot be in a namespace"))
		}
		if len(r.APIGroups) > 0 || len(r.Resources) > 0 || len(r.ResourceNames) > 0 {
			errs = append(errs, field.Invalid(at.Child("nonResourceURLs"), r.NonResourceURLs, "needs a rule of its own, without resources"))
		}
		return errs
	}
	if len(r.APIGroups) == 0 {
		errs = append(errs, field.Required(at.Child("apiGroups"), `must contain at least one API group; "" is the core group`))
	}
	if len(r.Resources) == 0 {
		errs = append(errs, field.Required(at.Child("resources"), "must contain at least one resource"))
	}
	return errs
}
