// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/base64"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A keep is a field that may leave the cluster: a path, in which [] is each element of a list, and the conversion of its value.
type keptField struct {
	path string
	as   func(any) any
}

// kept are the fields of each kind that may be in an archive. All other fields are omitted, so that a new field is not included until it is added
// here.
var kept = map[string][]keptField{
	"APIService":               {{"spec.group", same}, {"spec.version", same}, {"spec.service", same}, {"spec.insecureSkipTLSVerify", same}, {"spec.caBundle", hashed}, {"status.conditions", conditions}},
	"CustomResourceDefinition": {{"spec.group", same}},
	"ClusterRole":              {{"rules", same}}, "Role": {{"rules", same}},
	"ClusterRoleBinding": {{"roleRef", same}, {"subjects", same}}, "RoleBinding": {{"roleRef", same}, {"subjects", same}},
	"ValidatingAdmissionPolicy":        {{"spec.failurePolicy", same}},
	"ValidatingAdmissionPolicyBinding": {{"spec.policyName", same}, {"spec.validationActions", same}},
	"Lease":                            {{"spec.holderIdentity", same}, {"spec.leaseDurationSeconds", same}, {"spec.renewTime", same}, {"spec.acquireTime", same}, {"spec.leaseTransitions", same}},
	"Deployment": {{"spec.replicas", same}, {"spec.template.spec.serviceAccountName", same}, {"spec.template.spec.containers[].name", same},
		{"spec.template.spec.containers[].image", same}, {"spec.template.spec.containers[].args[]", flagName}, {"spec.template.spec.containers[].env[].name", same},
		{"status.replicas", same}, {"status.availableReplicas", same}, {"status.updatedReplicas", same}, {"status.conditions", conditions}},
	"Pod": {{"spec.nodeName", same}, {"spec.containers[].name", same}, {"spec.containers[].image", same}, {"spec.containers[].env[].name", same},
		{"status.phase", same}, {"status.conditions", conditions}, {"status.containerStatuses[].ready", same}, {"status.containerStatuses[].restartCount", same},
		{"status.containerStatuses[].state", same}},
	"Event": {{"reason", same}, {"type", same}, {"count", same}, {"involvedObject.kind", same}, {"involvedObject.name", same}, {"message", same},
		{"firstTimestamp", same}, {"lastTimestamp", same}},
	"Secret":         {{"type", same}, {"data", sizes}},
	"ServiceAccount": {}, "Namespace": {{"status.phase", same}},
	"Service":                        {{"spec.type", same}, {"spec.ports", same}, {"spec.selector", same}},
	"EndpointSlice":                  {{"endpoints[].conditions", same}, {"ports", same}},
	"ValidatingWebhookConfiguration": webhookFields, "MutatingWebhookConfiguration": webhookFields,
	"ManagedCluster": {{"spec.hubAcceptsClient", same}, {"spec.leaseDurationSeconds", same}, {"spec.taints", same}, {"status.conditions", conditions},
		{"status.version", same}},
	"ManagedClusterSet":         {{"spec.clusterSelector", same}, {"status.conditions", conditions}},
	"ManagedClusterSetBinding":  {{"spec.clusterSet", same}, {"status.conditions", conditions}},
	"CertificateSigningRequest": {{"spec.signerName", same}, {"spec.username", same}, {"spec.usages", same}, {"spec.request", hashed}, {"status.conditions", conditions}},
}

var webhookFields = []keptField{{"webhooks[].name", same}, {"webhooks[].rules", same}, {"webhooks[].failurePolicy", same}, {"webhooks[].timeoutSeconds", same},
	{"webhooks[].clientConfig.service", same}, {"webhooks[].clientConfig.caBundle", hashed}}

// Redacted returns the parts of an object that may be in an archive.
func Redacted(o *unstructured.Unstructured) map[string]any {
	out := map[string]any{"apiVersion": o.GetAPIVersion(), "kind": o.GetKind()}
	for _, field := range []string{"name", "namespace", "uid", "generation", "creationTimestamp", "deletionTimestamp", "labels", "finalizers"} {
		copyField(out, o.Object, keptField{"metadata." + field, same})
	}
	if keys := slices.Sorted(maps.Keys(o.GetAnnotations())); len(keys) > 0 {
		out["metadata"].(map[string]any)["annotationKeys"] = anyList(keys)
	}
	for _, k := range kept[o.GetKind()] {
		copyField(out, o.Object, k)
	}
	return Scrubbed(out).(map[string]any)
}

// copyField copies the field at a path.
func copyField(to, from map[string]any, k keptField) {
	head, rest, deeper := strings.Cut(k.path, ".")
	name, isList := strings.CutSuffix(head, "[]")
	value, ok := from[name]
	if !ok || value == nil {
		return
	}
	if !deeper && !isList {
		to[name] = k.as(value)
		return
	}
	if !isList {
		if below, ok := value.(map[string]any); ok {
			into, _ := to[name].(map[string]any)
			if into == nil {
				into = map[string]any{}
			}
			to[name] = into
			copyField(into, below, keptField{rest, k.as})
		}
		return
	}
	list, _ := value.([]any)
	into, _ := to[name].([]any)
	for len(into) < len(list) {
		into = append(into, map[string]any{})
	}
	for i, element := range list {
		below, isMap := element.(map[string]any)
		target, _ := into[i].(map[string]any)
		switch {
		case !deeper:
			into[i] = k.as(element)
		case isMap && target != nil:
			copyField(target, below, keptField{rest, k.as})
		}
	}
	to[name] = into
}

func same(v any) any { return v }

func anyList(texts []string) (list []any) {
	for _, text := range texts {
		list = append(list, text)
	}
	return list
}

// hashed returns a hash of bytes, which are in base64.
func hashed(v any) any {
	text, _ := v.(string)
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		data = []byte(text)
	}
	return Hash(data)
}

// sizes returns the sizes of the values, which are secret.
func sizes(v any) any {
	out := map[string]any{}
	data, _ := v.(map[string]any)
	for key, value := range data {
		text, _ := value.(string)
		out[key] = fmt.Sprintf("%d bytes, left out", base64.StdEncoding.DecodedLen(len(text)))
	}
	return out
}

// harmless are the flags whose values are kept, as they describe the configuration of a component.
var harmless = []string{"--cluster-name", "--controllers", "--registration-drivers", "--works", "--agent-id", "--namespace", "--leader-elect-resource-name"}

// flagName returns a flag without its value, except for harmless flags.
func flagName(v any) any {
	text, _ := v.(string)
	name, _, hasValue := strings.Cut(text, "=")
	switch {
	case slices.Contains(harmless, name):
		return text
	case !strings.HasPrefix(text, "-"):
		return "(left out)"
	case hasValue:
		return name + "=(left out)"
	}
	return name
}

func conditions(v any) any {
	list, _ := v.([]any)
	out := []any{}
	for _, c := range list {
		from, _ := c.(map[string]any)
		to := map[string]any{}
		for _, field := range []string{"type", "status", "reason", "message", "lastTransitionTime", "lastUpdateTime"} {
			copyField(to, from, keptField{field, same})
		}
		out = append(out, to)
	}
	return out
}

const removed = "(left out)"

// secrets are patterns of secrets in any text: messages of conditions and events may quote them.
var secrets = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`-----BEGIN [A-Z ]+-----[\s\S]*?(-----END [A-Z ]+-----|$)`), removed},
	{regexp.MustCompile(`eyJ[\w-]+\.[\w-]+(\.[\w-]*)?`), removed},
	{regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`), removed},
	{regexp.MustCompile(`://[^/\s@"']+@`), "://" + removed + "@"},
	{regexp.MustCompile(`(?i)\b(bearer|basic)\s+[^\s"',]+`), "$1 " + removed},
	{regexp.MustCompile(`(?i)\b(password|passwd|token|api[_-]?key|secret[_-]?key)(["']?\s*[=:]\s*)[^\s"',]+`), "$1$2" + removed},
	{regexp.MustCompile(`[A-Za-z0-9+/_=-]{64,}`), removed},
}

// Scrubbed returns a JSON value with secrets in its texts replaced.
func Scrubbed(value any) any {
	switch v := value.(type) {
	case string:
		for _, s := range secrets {
			v = s.pattern.ReplaceAllString(v, s.with)
		}
		return v
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = Scrubbed(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key := range v {
			out[Scrubbed(key).(string)] = Scrubbed(v[key])
		}
		return out
	}
	return value
}
