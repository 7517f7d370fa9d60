// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	accounts = "system:serviceaccounts:"
	account  = "system:serviceaccount:"
)

// Deliver returns the objects as they are delivered to a namespace, in the order of the archive. The result is deterministic: it has every namespaced
// object in this namespace, and the references to namespaces that refer knows are rewritten to it. Objects of kind Namespace are left out: only users
// who may create a namespace decide about that.
func (a *Archive) Deliver(namespace string) ([]*unstructured.Unstructured, error) {
	return a.deliver(namespace, true)
}

// DeliverNamespaced is like Deliver for an agent that has rights in the namespace alone: it leaves out cluster-scoped objects, which the agent cannot
// create.
func (a *Archive) DeliverNamespaced(namespace string) ([]*unstructured.Unstructured, error) {
	return a.deliver(namespace, false)
}

func (a *Archive) deliver(namespace string, clusterScoped bool) ([]*unstructured.Unstructured, error) {
	if len(validation.IsDNS1123Label(namespace)) > 0 {
		return nil, fmt.Errorf("%s is not a valid name of a namespace: use small letters, digits and '-'", short(namespace))
	}
	delivered := make([]*unstructured.Unstructured, 0, len(a.manifests))
	for i, manifest := range a.manifests {
		o := &a.Contents.Objects[i]
		if o.Scope == Cluster && !clusterScoped {
			continue
		}
		content := runtime.DeepCopyJSON(manifest)
		metadata := content["metadata"].(map[string]any)
		if o.Scope == Cluster {
			delete(metadata, "namespace")
		} else {
			metadata["namespace"] = namespace
		}
		if err := refer(o, content, namespace); err != nil {
			return nil, fmt.Errorf("the file %s in the archive has %s, of which %w", short(a.files[i]), o, err)
		}
		delivered = append(delivered, &unstructured.Unstructured{Object: content})
	}
	return delivered, nil
}

// volumeSecrets are the references to Secrets of a volume with a CSI driver.
var volumeSecrets = []string{"controllerPublishSecretRef", "nodeStageSecretRef", "nodePublishSecretRef", "controllerExpandSecretRef", "nodeExpandSecretRef"}

// refer rewrites the references of an object to namespaces.
func refer(o *Object, content map[string]any, namespace string) error {
	switch o.Group + "/" + o.Kind {
	case "rbac.authorization.k8s.io/RoleBinding", "rbac.authorization.k8s.io/ClusterRoleBinding":
		return each(content, "subjects", func(subject map[string]any) error { return rewriteSubject(subject, namespace) })
	case "admissionregistration.k8s.io/ValidatingWebhookConfiguration", "admissionregistration.k8s.io/MutatingWebhookConfiguration":
		return each(content, "webhooks", func(webhook map[string]any) error {
			return set(webhook, namespace, "clientConfig", "service")
		})
	case "apiregistration.k8s.io/APIService":
		return set(content, namespace, "spec", "service")
	case "apiextensions.k8s.io/CustomResourceDefinition":
		return set(content, namespace, "spec", "conversion", "webhook", "clientConfig", "service")
	case "/PersistentVolume":
		for _, secret := range volumeSecrets {
			if err := replace(content, namespace, "spec", "csi", secret); err != nil {
				return err
			}
		}
		return set(content, namespace, "spec", "claimRef")
	case "networking.k8s.io/IngressClass":
		return replace(content, namespace, "spec", "parameters")
	case "admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding", "admissionregistration.k8s.io/MutatingAdmissionPolicyBinding":
		return replace(content, namespace, "spec", "paramRef")
	case "flowcontrol.apiserver.k8s.io/FlowSchema":
		spec, err := within(content, []string{"spec"})
		if err != nil {
			return err
		}
		return each(spec, "rules", func(rule map[string]any) error {
			return each(rule, "subjects", func(subject map[string]any) error { return set(subject, namespace, "serviceAccount") })
		})
	case "/PersistentVolumeClaim":
		return replace(content, namespace, "spec", "dataSourceRef")
	}
	return nil
}

// rewriteSubject rewrites a subject of a binding, in each form that names a namespace. The binding never determines the namespace of a service
// account.
func rewriteSubject(subject map[string]any, namespace string) error {
	kind, isKind := subject["kind"].(string)
	name, isName := subject["name"].(string)
	if !isKind || !isName {
		return errors.New("a subject has no kind or no name")
	}
	switch kind {
	case "ServiceAccount":
		subject["namespace"] = namespace
	case "Group":
		if strings.HasPrefix(name, accounts) {
			subject["name"] = accounts + namespace
		}
	case "User":
		if rest, is := strings.CutPrefix(name, account); is {
			_, of, two := strings.Cut(rest, ":")
			if !two {
				return errors.New("a subject is a service account without a namespace")
			}
			subject["name"] = account + namespace + ":" + of
		}
	}
	return nil
}

// each calls do for each map of a list, which may be missing.
func each(content map[string]any, field string, do func(map[string]any) error) error {
	value := content[field]
	if value == nil {
		return nil
	}
	list, is := value.([]any)
	if !is {
		return fmt.Errorf("%s is not a list", field)
	}
	for _, value := range list {
		item, is := value.(map[string]any)
		if !is {
			return fmt.Errorf("%s has an entry that is not a map", field)
		}
		if err := do(item); err != nil {
			return err
		}
	}
	return nil
}

// within returns the map at the end of a path, or nil if it does not exist.
func within(content map[string]any, path []string) (map[string]any, error) {
	for i, field := range path {
		value := content[field]
		if value == nil {
			return nil, nil
		}
		next, is := value.(map[string]any)
		if !is {
			return nil, fmt.Errorf("%s is not a map", strings.Join(path[:i+1], "."))
		}
		content = next
	}
	return content, nil
}

// set sets the namespace in a map, if the map exists.
func set(content map[string]any, namespace string, path ...string) error {
	m, err := within(content, path)
	if m != nil {
		m["namespace"] = namespace
	}
	return err
}

// replace replaces the namespace in a map, if the map has one: otherwise the object's own is implied.
func replace(content map[string]any, namespace string, path ...string) error {
	m, err := within(content, path)
	if m != nil && m["namespace"] != nil {
		m["namespace"] = namespace
	}
	return err
}
