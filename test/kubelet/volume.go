// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// volume is one of a pod.
type volume struct {
	spec corev1.Volume
	// dir is what containers mount.
	dir string
	// readOnly is whether containers cannot write.
	readOnly bool
	// written is what is in it.
	written map[string]file
	tokens  map[string]*token
}

// file is one of a volume, by its path there.
type file struct {
	data string
	mode os.FileMode
	// own is whether it belongs to the user of the pod, and not to root.
	own bool
}

// token is one of a ServiceAccount.
type token struct {
	value            string
	issued, expiring time.Time
}

// due is whether it is time for another one: when a fifth of its time is left, or after a day.
func (t *token) due(now time.Time) bool {
	return now.Sub(t.issued) > 24*time.Hour || now.After(t.issued.Add(t.expiring.Sub(t.issued)*4/5))
}

// prepare makes all volumes, or brings them up to date.
func (w *worker) prepare(ctx context.Context) error {
	if w.volumes == nil {
		w.volumes = map[string]*volume{}
		for _, spec := range w.pod.Spec.Volumes {
			w.volumes[spec.Name] = &volume{spec: spec, dir: filepath.Join(w.dir, "volumes", spec.Name), tokens: map[string]*token{}}
		}
	}
	renew := w.renewTokens.Swap(false)
	var errs []error
	for _, spec := range w.pod.Spec.Volumes {
		v := w.volumes[spec.Name]
		if renew {
			clear(v.tokens)
		}
		if err := w.prepareVolume(ctx, v); err != nil {
			errs = append(errs, fmt.Errorf("the volume %q: %w", spec.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (w *worker) prepareVolume(ctx context.Context, v *volume) error {
	switch spec := v.spec; {
	case spec.EmptyDir != nil:
		return w.folder(v.dir)
	case spec.PersistentVolumeClaim != nil:
		claim, err := w.k.client.CoreV1().PersistentVolumeClaims(w.namespace).Get(ctx, spec.PersistentVolumeClaim.ClaimName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		v.dir = filepath.Join(w.k.dir, "claims", string(claim.UID))
		return w.folder(v.dir)
	}
	files, err := w.files(ctx, v)
	if err != nil {
		return err
	}
	v.readOnly = true
	if v.written != nil && maps.Equal(v.written, files) {
		return nil
	}
	if err := writeVolume(v.dir, files, w.own); err != nil {
		return err
	}
	v.written = files
	return nil
}

// folder is one that containers write into.
func (w *worker) folder(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	mode := os.FileMode(0o777)
	if w.fsGroup() >= 0 {
		mode |= os.ModeSetgid
	}
	if err := chown(dir, 0, max(0, w.fsGroup())); err != nil {
		return err
	}
	return os.Chmod(dir, mode)
}

// fsGroup is the group of volumes, or -1.
func (w *worker) fsGroup() int {
	if s := w.pod.Spec.SecurityContext; s != nil && s.FSGroup != nil {
		return int(*s.FSGroup)
	}
	return -1
}

// own gives a file its owner and its mode.
func (w *worker) own(name string, f file) error {
	owner, mode := 0, f.mode
	if w.fsGroup() >= 0 {
		mode |= 0o440
	}
	if f.own {
		owner, _ = userOf(w.pod, &w.pod.Spec.Containers[0])
	}
	if err := chown(name, owner, max(0, w.fsGroup())); err != nil {
		return err
	}
	return os.Chmod(name, mode)
}

// chown gives a file to another user. Only root can do that; for others, all files belong to the one user of their pods.
func chown(name string, user, group int) error {
	if oneUser() {
		return nil
	}
	return os.Lchown(name, user, group)
}

// files are those of a volume that the cluster has the content of.
func (w *worker) files(ctx context.Context, v *volume) (map[string]file, error) {
	files := map[string]file{}
	switch spec := v.spec; {
	case spec.Secret != nil:
		return files, w.secretFiles(files, spec.Secret.SecretName, spec.Secret.Items, spec.Secret.Optional, spec.Secret.DefaultMode)
	case spec.ConfigMap != nil:
		return files, w.configMapFiles(files, spec.ConfigMap.Name, spec.ConfigMap.Items, spec.ConfigMap.Optional, spec.ConfigMap.DefaultMode)
	case spec.DownwardAPI != nil:
		return files, w.fieldFiles(files, spec.DownwardAPI.Items, spec.DownwardAPI.DefaultMode)
	case spec.Projected != nil:
		for _, source := range spec.Projected.Sources {
			if err := w.projectedFiles(ctx, files, v, source); err != nil {
				return nil, err
			}
		}
		return files, nil
	}
	return nil, refusal("its kind is not known")
}

func (w *worker) projectedFiles(ctx context.Context, files map[string]file, v *volume, source corev1.VolumeProjection) error {
	mode := v.spec.Projected.DefaultMode
	switch {
	case source.Secret != nil:
		return w.secretFiles(files, source.Secret.Name, source.Secret.Items, source.Secret.Optional, mode)
	case source.ConfigMap != nil:
		return w.configMapFiles(files, source.ConfigMap.Name, source.ConfigMap.Items, source.ConfigMap.Optional, mode)
	case source.DownwardAPI != nil:
		return w.fieldFiles(files, source.DownwardAPI.Items, mode)
	case source.ServiceAccountToken != nil:
		value, err := w.token(ctx, v, source.ServiceAccountToken)
		if err != nil {
			return err
		}
		// As a real one does: only the pod's user reads it.
		files[path.Clean(source.ServiceAccountToken.Path)] = file{data: value, mode: 0o600, own: w.fsGroup() < 0}
		return nil
	}
	return refusal("its kind is not known")
}

// token is one for this pod, from the API server.
func (w *worker) token(ctx context.Context, v *volume, want *corev1.ServiceAccountTokenProjection) (string, error) {
	have := v.tokens[want.Path]
	if have != nil && !have.due(time.Now()) {
		return have.value, nil
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: want.ExpirationSeconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: w.name, UID: w.uid},
	}}
	if want.Audience != "" {
		request.Spec.Audiences = []string{want.Audience}
	}
	got, err := w.k.client.CoreV1().ServiceAccounts(w.namespace).CreateToken(ctx, w.pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		if have != nil && time.Now().Before(have.expiring) {
			return have.value, nil
		}
		return "", err
	}
	v.tokens[want.Path] = &token{value: got.Status.Token, issued: time.Now(), expiring: got.Status.ExpirationTimestamp.Time}
	return got.Status.Token, nil
}

func (w *worker) secretFiles(files map[string]file, name string, items []corev1.KeyToPath, optional *bool, mode *int32) error {
	var data map[string][]byte
	secret, err := w.k.secrets.Secrets(w.namespace).Get(name)
	if err == nil {
		data = secret.Data
	}
	return keyFiles(files, data, items, optional, mode, err)
}

func (w *worker) configMapFiles(files map[string]file, name string, items []corev1.KeyToPath, optional *bool, mode *int32) error {
	var data map[string][]byte
	configMap, err := w.k.configMaps.ConfigMaps(w.namespace).Get(name)
	if err == nil {
		data = dataOf(configMap)
	}
	return keyFiles(files, data, items, optional, mode, err)
}

// keyFiles are those of the keys of a Secret or ConfigMap: all of them, or the items.
func keyFiles(files map[string]file, data map[string][]byte, items []corev1.KeyToPath, optional *bool, mode *int32, err error) error {
	isOptional := optional != nil && *optional
	if err != nil && (!isOptional || !apierrors.IsNotFound(err)) {
		return err
	}
	if len(items) == 0 {
		for key := range data {
			items = append(items, corev1.KeyToPath{Key: key, Path: key})
		}
	}
	for _, item := range items {
		value, there := data[item.Key]
		if !there && !isOptional {
			return fmt.Errorf("there is no key %q", item.Key)
		}
		if there {
			files[path.Clean(item.Path)] = file{data: string(value), mode: modeOf(item.Mode, mode)}
		}
	}
	return nil
}

func (w *worker) fieldFiles(files map[string]file, items []corev1.DownwardAPIVolumeFile, mode *int32) error {
	for _, item := range items {
		if item.FieldRef == nil {
			return refusal("the file %q of it names no field", item.Path)
		}
		value, err := w.field(item.FieldRef.FieldPath)
		if err != nil {
			return err
		}
		files[path.Clean(item.Path)] = file{data: value, mode: modeOf(item.Mode, mode)}
	}
	return nil
}

// modeOf is the first mode that is stated, 0644 by default.
func modeOf(modes ...*int32) os.FileMode {
	for _, mode := range modes {
		if mode != nil {
			return os.FileMode(*mode).Perm()
		}
	}
	return 0o644
}
