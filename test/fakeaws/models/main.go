// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command models prints the parts of AWS's API models that fakeaws needs: the operations that it serves, with the shapes of their requests and their
// errors. It is a separate module, so that no other code depends on the SDK with the models, which is past its end of life.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	// The models are data files of this module. The import keeps it in go.mod.
	_ "github.com/aws/aws-sdk-go"
)

const sdk = "github.com/aws/aws-sdk-go"

// served are the operations by service, with the file of the service's model.
var served = []struct{ service, file, operations string }{
	{"iam", "iam/2010-05-08", `CreateRole GetRole DeleteRole UpdateAssumeRolePolicy PutRolePolicy GetRolePolicy
		DeleteRolePolicy ListRolePolicies AttachRolePolicy DetachRolePolicy ListAttachedRolePolicies
		PutRolePermissionsBoundary DeleteRolePermissionsBoundary TagRole UntagRole ListRoleTags
		ListRoles`},
	{"sts", "sts/2011-06-15", "AssumeRole AssumeRoleWithWebIdentity GetCallerIdentity"},
	{"eks", "eks/2017-11-01", `CreateAccessEntry DescribeAccessEntry UpdateAccessEntry DeleteAccessEntry ListAccessEntries
		AssociateAccessPolicy DisassociateAccessPolicy ListAssociatedAccessPolicies TagResource UntagResource DescribeCluster`},
}

// The types of AWS's models, with the fields that are read.
type (
	awsModel struct {
		Metadata   struct{ APIVersion, XMLNamespace string }
		Operations map[string]awsOperation
		Shapes     map[string]*awsShape
	}
	awsOperation struct {
		HTTP   struct{ Method, RequestURI string }
		Input  awsRef
		Output struct{ ResultWrapper string }
		Errors []awsRef
	}
	awsShape struct {
		Type     string
		Required []string
		Members  map[string]awsRef
		Member   *awsRef
		Key      *awsRef
		Value    *awsRef
		Min, Max *int
		Pattern  string
		Enum     []string
		Error    struct {
			Code           string
			HTTPStatusCode int
		}
	}
	awsRef struct{ Shape, Location, LocationName string }
)

// The types of the output, which fakeaws/model.go reads.
type (
	model struct {
		Generated string             `json:"generated"`
		Services  map[string]service `json:"services"`
	}
	service struct {
		APIVersion   string               `json:"apiVersion"`
		XMLNamespace string               `json:"xmlNamespace,omitempty"`
		Operations   map[string]operation `json:"operations"`
		Shapes       map[string]*shape    `json:"shapes"`
	}
	operation struct {
		Method string         `json:"method"`
		URI    string         `json:"uri"`
		Input  string         `json:"input"`
		Result string         `json:"result,omitempty"`
		Errors map[string]int `json:"errors"`
	}
	shape struct {
		Type     string         `json:"type"`
		Required []string       `json:"required,omitempty"`
		Members  map[string]ref `json:"members,omitempty"`
		Member   *ref           `json:"member,omitempty"`
		Key      *ref           `json:"key,omitempty"`
		Value    *ref           `json:"value,omitempty"`
		Min      *int           `json:"min,omitempty"`
		Max      *int           `json:"max,omitempty"`
		Pattern  string         `json:"pattern,omitempty"`
		Enum     []string       `json:"enum,omitempty"`
	}
	ref struct {
		Shape        string `json:"shape"`
		Location     string `json:"location,omitempty"`
		LocationName string `json:"name,omitempty"`
	}
)

func main() {
	out, err := generate()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = os.Stdout.Write(out)
}

// moduleDir returns the directory of AWS's SDK in the module cache, and its version.
func moduleDir() (dir, version string, err error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}} {{.Version}}", sdk).Output()
	if err != nil {
		return "", "", fmt.Errorf("go list -m %s: %w", sdk, err)
	}
	dir, version, _ = strings.Cut(strings.TrimSpace(string(out)), " ")
	return dir, version, nil
}

func generate() ([]byte, error) {
	dir, version, err := moduleDir()
	if err != nil {
		return nil, err
	}
	all := model{
		Generated: fmt.Sprintf("by test/fakeaws/models from %s %s. Do not edit.", sdk, version),
		Services:  map[string]service{},
	}
	for _, s := range served {
		from, err := load(dir, s.file)
		if err != nil {
			return nil, err
		}
		to := service{
			APIVersion: from.Metadata.APIVersion, XMLNamespace: from.Metadata.XMLNamespace,
			Operations: map[string]operation{}, Shapes: map[string]*shape{},
		}
		for name := range strings.FieldsSeq(s.operations) {
			op, ok := from.Operations[name]
			if !ok {
				return nil, fmt.Errorf("%s has no operation %s", s.file, name)
			}
			to.Operations[name] = operation{
				Method: op.HTTP.Method, URI: op.HTTP.RequestURI, Input: op.Input.Shape, Result: op.Output.ResultWrapper,
				Errors: from.errorsOf(op),
			}
			if err := to.add(from, op.Input.Shape); err != nil {
				return nil, fmt.Errorf("%s %s: %w", s.file, name, err)
			}
		}
		all.Services[s.service] = to
	}
	out, err := json.MarshalIndent(all, "", " ")
	return append(out, '\n'), err
}

func load(dir, file string) (*awsModel, error) {
	data, err := os.ReadFile(filepath.Join(dir, "models", "apis", filepath.FromSlash(file), "api-2.json"))
	if err != nil {
		return nil, err
	}
	var from awsModel
	return &from, json.Unmarshal(data, &from)
}

// errorsOf returns the codes that the operation declares, with their HTTP status. In JSON protocols the code is the name of the shape.
func (m *awsModel) errorsOf(op awsOperation) map[string]int {
	codes := map[string]int{}
	for _, e := range op.Errors {
		s := m.Shapes[e.Shape]
		code := s.Error.Code
		if code == "" {
			code = e.Shape
		}
		codes[code] = s.Error.HTTPStatusCode
	}
	return codes
}

// add adds a shape and those that it refers to.
func (to *service) add(from *awsModel, name string) error {
	if _, ok := to.Shapes[name]; ok {
		return nil
	}
	s := from.Shapes[name]
	pattern, err := goPattern(s.Pattern)
	if err != nil {
		return fmt.Errorf("shape %s: %w", name, err)
	}
	out := &shape{Type: s.Type, Required: s.Required, Min: s.Min, Max: s.Max, Pattern: pattern, Enum: s.Enum}
	to.Shapes[name] = out
	var parts []awsRef
	for member, r := range s.Members {
		if out.Members == nil {
			out.Members = map[string]ref{}
		}
		out.Members[member] = ref(r)
		parts = append(parts, r)
	}
	for _, part := range []struct {
		from *awsRef
		to   **ref
	}{{s.Member, &out.Member}, {s.Key, &out.Key}, {s.Value, &out.Value}} {
		if part.from != nil {
			r := ref(*part.from)
			*part.to = &r
			parts = append(parts, *part.from)
		}
	}
	for _, r := range parts {
		if err := to.add(from, r.Shape); err != nil {
			return err
		}
	}
	return nil
}

// javaEscape matches Java's escapes of characters. AWS's models also have characters beyond the basic plane.
var javaEscape = regexp.MustCompile(`\\u(10FFFF|10000|[0-9A-Fa-f]{4})`)

// goPattern converts a pattern of AWS's models, which must match the whole value, to a Go pattern.
func goPattern(java string) (string, error) {
	if java == "" {
		return "", nil
	}
	pattern := "^(?:" + strings.TrimSuffix(strings.TrimPrefix(javaEscape.ReplaceAllString(java, `\x{$1}`), "^"), "$") + ")$"
	_, err := regexp.Compile(pattern)
	return pattern, err
}
