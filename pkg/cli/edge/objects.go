// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/apis/edge/install"
	api "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/edge/validation"
	"github.com/clusterhub/clusterhub/pkg/edge/model"
)

// edgeScheme has the versions of edge.clusterhub.dev with their defaults, and lists of Kubernetes.
var edgeScheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	install.Install(s)
	s.AddKnownTypeWithName(schema.GroupVersionKind{Version: "v1", Kind: "List"}, &metav1.List{})
	return s
}()

// isManifest reports whether a file has manifests: objects with apiVersion and kind, in JSON or YAML.
func isManifest(data []byte) bool {
	trimmed := bytes.TrimSpace(data)
	// Files of Open Horizon are one object in JSON, or a list of user input, and can begin with a comment.
	if len(trimmed) == 0 || !strings.ContainsRune("{/[", rune(trimmed[0])) {
		return true
	}
	var kind metav1.TypeMeta
	return json.Unmarshal(trimmed, &kind) == nil && (kind.APIVersion != "" || kind.Kind != "")
}

// readManifests reads all objects of a file. It returns an error for unknown fields, which may be typing mistakes.
func readManifests(data []byte) (all []runtime.Object, err error) {
	documents := yamlutil.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for n := 1; ; n++ {
		document, err := documents.Read()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		var empty any
		if yaml.Unmarshal(document, &empty) == nil && empty == nil {
			continue // comments alone
		}
		objects, err := readManifest(document, true)
		if err != nil {
			return nil, fmt.Errorf("object %d: %w", n, err)
		}
		all = append(all, objects...)
		if len(all) > maxEdgeObjects {
			return nil, fmt.Errorf("it has more than %d objects: pass fewer of them at a time", maxEdgeObjects)
		}
	}
}

// readManifest reads an object, or the objects of a list. It does not support nested lists.
func readManifest(document []byte, lists bool) ([]runtime.Object, error) {
	decoder := jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, edgeScheme, edgeScheme,
		jsonserializer.SerializerOptions{Yaml: true, Strict: true})
	object, kind, err := decoder.Decode(document, nil, nil)
	switch {
	case runtime.IsMissingKind(err) || runtime.IsMissingVersion(err):
		return nil, errors.New("it has no apiVersion or no kind")
	case runtime.IsNotRegisteredError(err) && kind != nil:
		return nil, fmt.Errorf("it is a %s of %s: only EdgeNodes, EdgeServices, DeploymentPolicies and DeploymentPatterns of %s are read",
			kind.Kind, kind.GroupVersion(), api.SchemeGroupVersion)
	case err != nil:
		return nil, err
	}
	if list, is := object.(*metav1.List); is && lists {
		var all []runtime.Object
		for i := range list.Items {
			objects, err := readManifest(list.Items[i].Raw, false)
			if err != nil {
				return nil, fmt.Errorf("items[%d]: %w", i, err)
			}
			all = append(all, objects...)
		}
		return all, nil
	}
	if meta.IsListType(object) && lists {
		items, err := meta.ExtractList(object)
		if err != nil {
			return nil, err
		}
		for i, item := range items {
			gvk := api.SchemeGroupVersion.WithKind(strings.TrimSuffix(kind.Kind, "List"))
			item.GetObjectKind().SetGroupVersionKind(gvk)
			edgeScheme.Default(items[i])
		}
		return items, known(items...)
	}
	edgeScheme.Default(object)
	return []runtime.Object{object}, known(object)
}

// known returns an error for kinds that a check does not use.
func known(objects ...runtime.Object) error {
	for _, o := range objects {
		switch o.(type) {
		case *api.EdgeNode, *api.EdgeService, *api.DeploymentPolicy, *api.DeploymentPattern:
		default:
			return fmt.Errorf("it is a %s: only EdgeNodes, EdgeServices, DeploymentPolicies and DeploymentPatterns are read", o.GetObjectKind().GroupVersionKind().Kind)
		}
	}
	return nil
}

// checkEdgeObject returns the error with which the hub would reject an object. Like the hub, it removes the properties that only the hub sets, and
// returns their names.
func checkEdgeObject(o runtime.Object) (dropped []string, err error) {
	languages, spec := model.Languages(), field.NewPath("spec")
	var errs field.ErrorList
	switch o := o.(type) {
	case *api.EdgeNode:
		internal := &edge.EdgeNode{}
		if err := edgeScheme.Convert(o, internal, nil); err != nil {
			return nil, err
		}
		dropped = edge.DropReadOnlyOfNode(&internal.Spec, spec)
		errs = validation.ValidateEdgeNode(internal, languages)
		errs = append(errs, nodeFacts(internal, languages)...)
		if len(dropped) > 0 {
			err = edgeScheme.Convert(internal, o, nil)
		}
	case *api.EdgeService:
		internal := &edge.EdgeService{}
		if err := edgeScheme.Convert(o, internal, nil); err != nil {
			return nil, err
		}
		dropped = edge.DropReadOnly(internal.Spec.Policy, spec.Child("policy"))
		errs = validation.ValidateEdgeService(internal, languages)
		if len(dropped) > 0 {
			err = edgeScheme.Convert(internal, o, nil)
		}
	case *api.DeploymentPolicy:
		internal := &edge.DeploymentPolicy{}
		if err := edgeScheme.Convert(o, internal, nil); err != nil {
			return nil, err
		}
		dropped = edge.DropReadOnly(&internal.Spec.Policy, spec)
		errs = validation.ValidateDeploymentPolicy(internal, languages)
		if len(dropped) > 0 {
			err = edgeScheme.Convert(internal, o, nil)
		}
	case *api.DeploymentPattern:
		internal := &edge.DeploymentPattern{}
		if err := edgeScheme.Convert(o, internal, nil); err != nil {
			return nil, err
		}
		errs = validation.ValidateDeploymentPattern(internal, languages)
	}
	if beyond := edgeScheme.Validate(context.Background(), nil, o); len(beyond) > 0 {
		errs = beyond
	}
	return dropped, errors.Join(errs.ToAggregate(), err)
}

// nodeFacts validates the status of a node, which is sent in a DeployCheck.
func nodeFacts(n *edge.EdgeNode, languages validation.Languages) (errs field.ErrorList) {
	question := &edge.DeployCheck{Spec: edge.DeployCheckSpec{PolicyName: "p", Limit: 1, Nodes: []edge.CheckedNode{{Name: "n", Status: n.Status}}}}
	question.Namespace = metav1.NamespaceDefault
	for _, e := range validation.ValidateDeployCheck(question, languages) {
		e.Field = strings.TrimPrefix(e.Field, "spec.nodes[0].")
		errs = append(errs, e)
	}
	return errs
}
