// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// environment returns the environment of a container: its own variables, and those of all containers. The values are those that its arguments can
// refer to.
func (w *worker) environment(c *corev1.Container) (env []string, values map[string]string, err error) {
	values = map[string]string{
		"KUBERNETES_SERVICE_HOST": w.k.host, "KUBERNETES_SERVICE_PORT": w.k.port, "KUBERNETES_SERVICE_PORT_HTTPS": w.k.port,
	}
	for _, v := range c.Env {
		value, there, err := w.variable(v, values)
		if err != nil {
			return nil, nil, fmt.Errorf("the environment variable %s: %w", v.Name, err)
		}
		if there {
			values[v.Name] = value
		}
	}
	all := map[string]string{"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/", "HOSTNAME": w.name}
	maps.Copy(all, values)
	for name, value := range all {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env, values, nil
}

func (w *worker) variable(v corev1.EnvVar, before map[string]string) (value string, there bool, err error) {
	from := v.ValueFrom
	switch {
	case from == nil:
		return expand(v.Value, before), true, nil
	case from.FieldRef != nil:
		value, err := w.field(from.FieldRef.FieldPath)
		return value, err == nil, err
	case from.SecretKeyRef != nil:
		ref, data := from.SecretKeyRef, map[string][]byte(nil)
		secret, err := w.k.secrets.Secrets(w.namespace).Get(ref.Name)
		if err == nil {
			data = secret.Data
		}
		return keyOf(data, ref.Key, ref.Optional, fmt.Sprintf("Secret %q", ref.Name), err)
	case from.ConfigMapKeyRef != nil:
		ref, data := from.ConfigMapKeyRef, map[string][]byte(nil)
		configMap, err := w.k.configMaps.ConfigMaps(w.namespace).Get(ref.Name)
		if err == nil {
			data = dataOf(configMap)
		}
		return keyOf(data, ref.Key, ref.Optional, fmt.Sprintf("ConfigMap %q", ref.Name), err)
	}
	return "", false, refusal("its source is not known")
}

func keyOf(data map[string][]byte, key string, optional *bool, what string, err error) (string, bool, error) {
	value, there := data[key]
	switch {
	case there:
		return string(value), true, nil
	case optional != nil && *optional && (err == nil || apierrors.IsNotFound(err)):
		return "", false, nil
	case err != nil:
		return "", false, err
	}
	return "", false, fmt.Errorf("%s has no key %q", what, key)
}

// dataOf returns all data of a ConfigMap.
func dataOf(configMap *corev1.ConfigMap) map[string][]byte {
	data := map[string][]byte{}
	for key, value := range configMap.BinaryData {
		data[key] = value
	}
	for key, value := range configMap.Data {
		data[key] = []byte(value)
	}
	return data
}

// field returns a field of a pod for the downward API.
func (w *worker) field(path string) (string, error) {
	switch path {
	case "metadata.name":
		return w.name, nil
	case "metadata.namespace":
		return w.namespace, nil
	case "metadata.uid":
		return string(w.uid), nil
	case "spec.nodeName":
		return w.k.config.Node, nil
	case "spec.serviceAccountName":
		return w.pod.Spec.ServiceAccountName, nil
	}
	for prefix, of := range map[string]map[string]string{"metadata.labels['": w.pod.Labels, "metadata.annotations['": w.pod.Annotations} {
		if key, ok := strings.CutPrefix(path, prefix); ok {
			return of[strings.TrimSuffix(key, "']")], nil
		}
	}
	return "", refusal("the field %s is not known", path)
}

// expand replaces $(NAME) by the value of a variable. $$ is a dollar sign. Unknown variables stay.
func expand(text string, values map[string]string) string {
	var out strings.Builder
	for {
		at := strings.IndexByte(text, '$')
		if at < 0 || at == len(text)-1 {
			return out.String() + text
		}
		out.WriteString(text[:at])
		text = text[at+1:]
		name, rest, closed := strings.Cut(strings.TrimPrefix(text, "("), ")")
		switch {
		case text[0] == '$':
			out.WriteByte('$')
			text = text[1:]
		case text[0] != '(' || !closed:
			out.WriteByte('$')
		default:
			value, known := values[name]
			if !known {
				value = "$(" + name + ")"
			}
			out.WriteString(value)
			text = rest
		}
	}
}
