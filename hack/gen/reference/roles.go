// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	rbacv1 "k8s.io/api/rbac/v1"
	strictyaml "sigs.k8s.io/yaml"
)

// folder is one of artifacts/deploy that has roles or bindings.
type folder struct {
	name, text string
	roles      []role
	bindings   []binding
}

// role is a ClusterRole, or a Role in a namespace.
type role struct {
	name, namespace, text string
	labels                map[string]string
	rules                 []rbacv1.PolicyRule
	// why has the comments of the manifest above each rule.
	why []string
}

// binding gives a role to subjects, in a namespace if it has one.
type binding struct {
	namespace string
	to        rbacv1.RoleRef
	subjects  []rbacv1.Subject
}

// rbacObject has the fields of a role or a binding that are read.
type rbacObject struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name      string            `json:"name"`
		Namespace string            `json:"namespace"`
		Labels    map[string]string `json:"labels"`
	} `json:"metadata"`
	Rules    []rbacv1.PolicyRule `json:"rules"`
	RoleRef  rbacv1.RoleRef      `json:"roleRef"`
	Subjects []rbacv1.Subject    `json:"subjects"`
}

// deployed are the folders of artifacts/deploy that have rights in them, with those of every hub first.
func deployed(root string) ([]folder, error) {
	files, err := filepath.Glob(filepath.Join(root, "artifacts", "deploy", "*", "*.yaml"))
	if err != nil {
		return nil, err
	}
	var all []folder
	for _, path := range files {
		name := filepath.Base(filepath.Dir(path))
		if len(all) == 0 || all[len(all)-1].name != name {
			all = append(all, folder{name: name})
		}
		if err := all[len(all)-1].read(path); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	all = slices.DeleteFunc(all, func(f folder) bool { return len(f.roles)+len(f.bindings) == 0 })
	slices.SortStableFunc(all, func(a, b folder) int {
		return cmp.Or(map[bool]int{true: -1}[a.name == "base"]-map[bool]int{true: -1}[b.name == "base"], cmp.Compare(a.name, b.name))
	})
	return all, nil
}

// read adds what a file has.
func (f *folder) read(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if filepath.Base(path) == "kustomization.yaml" {
		f.text = said(strings.SplitN(string(text), "\napiVersion:", 2)[0])
		return nil
	}
	for documents := yaml.NewDecoder(bytes.NewReader(text)); ; {
		node := yaml.Node{}
		if err := documents.Decode(&node); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		// Comments are in the node, and what is decoded as Kubernetes does it is not.
		plain, err := yaml.Marshal(&node)
		if err != nil {
			return err
		}
		o := rbacObject{}
		if err := strictyaml.Unmarshal(plain, &o); err != nil {
			return err
		}
		switch o.Kind {
		case "ClusterRole", "Role":
			r := role{name: o.Metadata.Name, namespace: o.Metadata.Namespace, labels: o.Metadata.Labels, rules: o.Rules, why: make([]string, len(o.Rules))}
			document := node.Content[0]
			r.text = said(node.HeadComment + "\n" + document.HeadComment + "\n" + document.Content[0].HeadComment)
			for i := 0; i+1 < len(document.Content); i += 2 {
				if document.Content[i].Value == "rules" {
					for at, rule := range document.Content[i+1].Content {
						r.why[at] = said(rule.HeadComment + "\n" + rule.Content[0].HeadComment)
					}
				}
			}
			f.roles = append(f.roles, r)
		case "ClusterRoleBinding", "RoleBinding":
			f.bindings = append(f.bindings, binding{o.Metadata.Namespace, o.RoleRef, o.Subjects})
		}
	}
}

// said is a comment of a manifest in one line, without what stands at the head of the file.
func said(comment string) string {
	var lines []string
	for _, line := range strings.Split(comment, "\n") {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#"))
		if !strings.HasPrefix(line, "Copyright ") && !strings.HasPrefix(line, "SPDX-") && !strings.HasPrefix(line, "Written by `make generate`") {
			lines = append(lines, line)
		}
	}
	return oneLine(strings.Join(lines, " "))
}

// givenTo returns the subjects that have a role by the bindings of any folder, and by Kubernetes' own roles that it is a part of.
func givenTo(r role, all []folder) string {
	var whom []string
	for _, of := range []string{"admin", "edit", "view"} {
		if r.labels["rbac.authorization.k8s.io/aggregate-to-"+of] == "true" {
			whom = append(whom, "users with the role `"+of+"` of Kubernetes")
		}
	}
	for _, f := range all {
		for _, b := range f.bindings {
			if b.to.Name != r.name || (b.to.Kind == "Role") != (r.namespace != "") || r.namespace != "" && b.namespace != r.namespace {
				continue
			}
			for _, s := range b.subjects {
				who := strings.ToLower(s.Kind) + " `" + s.Name + "`"
				if s.Kind == rbacv1.ServiceAccountKind {
					who = "service account `" + s.Namespace + "/" + s.Name + "`"
				}
				if r.namespace == "" && b.namespace != "" {
					who += " in the namespace `" + b.namespace + "`"
				}
				if !slices.Contains(whom, who) {
					whom = append(whom, who)
				}
			}
		}
	}
	if len(whom) == 0 {
		return "No manifest binds it: the hub or an admin does."
	}
	return "Granted to " + strings.Join(whom, ", ") + "."
}
