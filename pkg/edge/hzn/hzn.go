// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hzn converts files of Open Horizon's command line, hzn, to objects of edge.clusterhub.dev: node policies, service definitions and their
// policies, deployment policies and patterns, as they are written for hzn, and as its lists show them. It sends no requests and opens no files. The
// notes list what cannot be converted, by field and without values, since files may contain tokens.
package hzn

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
)

// MaxFile is the maximum size of a file, in bytes.
const MaxFile = 4 << 20

// Kind is the kind of a file.
type Kind string

const (
	// Node is a node policy, or a list of nodes.
	Node Kind = "node"
	// Service is a service definition.
	Service Kind = "service"
	// Policy is a deployment policy.
	Policy Kind = "policy"
	// Pattern is a pattern.
	Pattern Kind = "pattern"
)

// Kinds are all kinds.
var Kinds = []Kind{Node, Service, Policy, Pattern}

// Options supply what files do not contain.
type Options struct {
	// Name is the name of the object, for node policies, deployment policies and patterns that are alone in their file. A node has the name of its
	// ManagedCluster. The name of a service is derived from its content.
	Name string
	// Namespace is the namespace of the objects of files that name no organization. Nodes have none.
	Namespace string
	// Namespaces maps organizations to namespaces. An organization that is missing stands for the namespace of its name, if that is valid.
	Namespaces map[string]string
	// Variable returns the value of a variable, which files contain as $NAME or ${NAME}. It is called with any name in a file, so it should look up
	// what the user has given, and not the environment, which contains secrets. If it is nil, no variable is known.
	Variable func(name string) (value string, known bool)
	// Archive reads the file that a service definition names as operatorYamlArchive, limited in size, and from where the user has allowed it. If it
	// is nil, archives must be in the file itself, in base64.
	Archive func(path string) ([]byte, error)
}

// Result is the content of a file.
type Result struct {
	// Objects are of edge.clusterhub.dev/v1alpha1, in the order of their names in the file. The server has not validated them.
	Objects []runtime.Object
	// Notes list what was not converted, or not as it is in the file.
	Notes []Note
}

// Note is about a field of a file.
type Note struct {
	// Field is the path in the file.
	Field string
	// Text describes what happens to the field.
	Text string
}

// String formats the note as one line.
func (n Note) String() string { return n.Field + ": " + n.Text }

// Detect returns the kind of a file. A file with properties and constraints alone is a node policy; a service policy looks the same.
func Detect(data []byte) (Kind, error) {
	top, err := parse(data)
	if err != nil {
		return "", err
	}
	if isUserInput(top) {
		return "", ErrUserInput
	}
	if inside, ok := listed(top); ok {
		for _, key := range slices.Sorted(maps.Keys(inside)) {
			top = inside[key].(map[string]any)
			break
		}
	}
	has := func(name string) bool { _, ok := lookup(top, name); return ok }
	switch {
	case has("service"):
		return Policy, nil
	case has("services"):
		return Pattern, nil
	case has("url") && has("version"):
		return Service, nil
	case has("properties"), has("constraints"), has("deployment"), has("management"), has("nodeType"):
		return Node, nil
	}
	return "", fmt.Errorf("this is no node policy, service definition, deployment policy or pattern of hzn: it has none of the fields " +
		"properties, constraints, url and version, service, and services")
}

// Read reads a file with one object, or a list as hzn prints it. Its error lists everything that cannot be read.
func Read(kind Kind, data []byte, options Options) (*Result, error) {
	top, err := parse(data)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(Kinds, kind) {
		return nil, fmt.Errorf("the kind of the file has to be one of %q, and is %q", Kinds, kind)
	}
	r := &reader{options: options}
	if inside, ok := listed(top); ok {
		names := map[string]string{}
		for _, key := range slices.Sorted(maps.Keys(inside)) {
			org, name, _ := strings.Cut(key, "/")
			object := r.read(kind, key, r.expand(inside[key], key).(map[string]any), org, name)
			if at := nameOf(object); names[at] != "" {
				r.fail(key, "becomes %s as %s does: rename one of them", at, names[at])
			} else {
				names[at] = key
			}
		}
	} else {
		r.read(kind, "", r.expand(top, "").(map[string]any), "", "")
	}
	if err := r.err(string(kind)); err != nil {
		return nil, err
	}
	return &Result{Objects: r.objects, Notes: r.notes}, nil
}

// ReadServicePolicy reads the policy of a service, which hzn has in a file of its own and an EdgeService in spec.policy.
func ReadServicePolicy(data []byte, options Options) (*v1alpha1.Policy, []Note, error) {
	top, err := parse(data)
	if err != nil {
		return nil, nil, err
	}
	r := &reader{options: options}
	o := &object{reader: r, values: r.expand(top, "").(map[string]any)}
	policy := o.policyPart()
	for _, name := range []string{"label", "description"} {
		o.skip(name, "the service has one of its own")
	}
	o.drop("owner", "created", "lastUpdated")
	o.done()
	if err := r.err("service policy"); err != nil {
		return nil, nil, err
	}
	return &policy, r.notes, nil
}

// reader collects the results.
type reader struct {
	options Options
	objects []runtime.Object
	notes   []Note
	faults  []string
}

func (r *reader) note(field, text string) { r.notes = append(r.notes, Note{Field: field, Text: text}) }

// maxFaults is the maximum number of faults that are reported for a file.
const maxFaults = 20

func (r *reader) fail(field, format string, args ...any) {
	if len(r.faults) < maxFaults {
		r.faults = append(r.faults, field+": "+fmt.Sprintf(format, args...))
	}
}

func (r *reader) err(kind string) error {
	if len(r.faults) == 0 {
		return nil
	}
	return fmt.Errorf("the file cannot be read as a %s:\n  %s", kind, strings.Join(r.faults, "\n  "))
}

// read reads one object. org and name are those of the key in a list.
func (r *reader) read(kind Kind, at string, values map[string]any, org, name string) runtime.Object {
	o := &object{reader: r, at: at, values: values}
	if name == "" {
		name = r.options.Name
	}
	var read runtime.Object
	switch kind {
	case Node:
		read = o.node(name)
	case Service:
		read = o.service(org)
	case Policy:
		read = o.policy(org, name)
	case Pattern:
		read = o.pattern(org, name)
	}
	r.objects = append(r.objects, read)
	return read
}

// listed returns the objects of a list as hzn prints it, by <organization>/<name>.
func listed(top map[string]any) (map[string]any, bool) {
	for key, value := range top {
		if _, ok := value.(map[string]any); !ok || !strings.Contains(key, "/") {
			return nil, false
		}
	}
	return top, len(top) > 0
}

// parse parses a file. Integers stay integers.
func parse(data []byte) (map[string]any, error) {
	if len(data) > MaxFile {
		return nil, fmt.Errorf("the file has %d bytes, and may have %d", len(data), MaxFile)
	}
	var value any
	if err := utiljson.Unmarshal(quoteVariables(withoutComments(data)), &value); err != nil {
		return nil, fmt.Errorf("the file has to be one object in JSON: %w", err)
	}
	switch typed := value.(type) {
	case map[string]any:
		return typed, nil
	case []any:
		if isServiceInputs(typed) {
			return nil, ErrUserInput
		}
		return nil, fmt.Errorf("the file has to be one object in JSON, and is a list")
	}
	return nil, fmt.Errorf("the file has to be one object in JSON, and is %T", value)
}

// withoutComments replaces comments, which templates of hzn contain, by spaces.
func withoutComments(data []byte) []byte {
	out := slices.Clone(data)
	quoted := false
	for i := 0; i < len(out); i++ {
		switch {
		case quoted && out[i] == '\\':
			i++
		case out[i] == '"':
			quoted = !quoted
		case !quoted && out[i] == '/' && i+1 < len(out) && (out[i+1] == '*' || out[i+1] == '/'):
			end := "\n"
			if out[i+1] == '*' {
				end = "*/"
			}
			rest := out[i+2 : min(len(out), i+2+maxComment)]
			length := bytes.Index(rest, []byte(end))
			switch {
			case length >= 0:
				length += len(end)
			case end == "\n" && len(rest) < maxComment:
				length = len(rest)
			default:
				return out // It is no valid JSON then.
			}
			for last := i + 2 + length; i < last; i++ {
				out[i] = ' '
			}
			i--
		}
	}
	return out
}

// maxComment is the maximum length of a comment, so that many unterminated ones take no time.
const maxComment = 16 << 10

// namespace returns the namespace of an organization.
func (r *reader) namespace(org, at string) string {
	if org == "" {
		return r.options.Namespace
	}
	if namespace := r.options.Namespaces[org]; namespace != "" {
		return namespace
	}
	if isNamespace(org) {
		return org
	}
	r.fail(at, "the organization %q cannot be the name of a namespace: say which namespace stands for it", org)
	return ""
}

// name converts a name in a file to the name of an object.
func (r *reader) name(name, at string) string {
	valid := objectName(name)
	switch {
	case name == "":
		r.fail(join(at, "name"), "the file has no name for the object: say one")
	case valid == "":
		r.fail(join(at, "name"), "%q cannot be made the name of an object: say another", name)
	case valid != name:
		r.note(join(at, "name"), "is "+valid+" now: names of objects have small letters, digits, - and . only")
	}
	return valid
}

// readOnly reports whether the hub sets a property itself.
func readOnly(name string) bool { return edge.ReadOnly(name) }
