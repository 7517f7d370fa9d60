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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/local/pods/volume"
)

// mounted is a volume of a pod.
type mounted struct {
	spec corev1.Volume
	// dir is the directory that containers mount.
	dir string
	// readOnly reports whether containers cannot write to it.
	readOnly bool
	// written are its files.
	written map[string]volume.File
	tokens  map[string]*volume.Token
}

// prepare creates or updates all volumes.
func (w *worker) prepare(ctx context.Context) error {
	if w.volumes == nil {
		w.volumes = map[string]*mounted{}
		for _, spec := range w.pod.Spec.Volumes {
			w.volumes[spec.Name] = &mounted{spec: spec, dir: filepath.Join(w.dir, "volumes", spec.Name), tokens: map[string]*volume.Token{}}
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
			errs = append(errs, fmt.Errorf("writing the volume %q: %w", spec.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (w *worker) prepareVolume(ctx context.Context, v *mounted) error {
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
	if err := volume.Write(v.dir, files, w.own); err != nil {
		return err
	}
	v.written = files
	return nil
}

// folder creates a directory that containers write to.
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

// fsGroup returns the group of volumes, or -1.
func (w *worker) fsGroup() int {
	if s := w.pod.Spec.SecurityContext; s != nil && s.FSGroup != nil {
		return int(*s.FSGroup)
	}
	return -1
}

// own sets the owner and the mode of a file.
func (w *worker) own(name string, f volume.File) error {
	owner, mode := 0, f.Mode
	if w.fsGroup() >= 0 {
		mode |= 0o440
	}
	if f.Own {
		owner, _ = userOf(w.pod, &w.pod.Spec.Containers[0])
	}
	if err := chown(name, owner, max(0, w.fsGroup())); err != nil {
		return err
	}
	return os.Chmod(name, mode)
}

// chown changes the owner of a file. Only root can do that; otherwise all files belong to the one user of the pods.
func chown(name string, user, group int) error {
	if oneUser() {
		return nil
	}
	return os.Lchown(name, user, group)
}

// files returns the files of a volume whose content comes from the cluster.
func (w *worker) files(ctx context.Context, v *mounted) (map[string]volume.File, error) {
	files := map[string]volume.File{}
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

func (w *worker) projectedFiles(ctx context.Context, files map[string]volume.File, v *mounted, source corev1.VolumeProjection) error {
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
		// Like with a real kubelet, only the pod's user can read it.
		files[path.Clean(source.ServiceAccountToken.Path)] = volume.File{Data: value, Mode: 0o600, Own: w.fsGroup() < 0}
		return nil
	}
	return refusal("its kind is not known")
}

// token returns a token for this pod from the API server.
func (w *worker) token(ctx context.Context, v *mounted, want *corev1.ServiceAccountTokenProjection) (string, error) {
	have := v.tokens[want.Path]
	if have != nil && !have.Due(time.Now()) {
		return have.Value, nil
	}
	got, err := volume.RequestToken(ctx, w.k.client, w.pod, want)
	if err != nil {
		if have != nil && time.Now().Before(have.Expires) {
			return have.Value, nil
		}
		return "", err
	}
	v.tokens[want.Path] = got
	return got.Value, nil
}

func (w *worker) secretFiles(files map[string]volume.File, name string, items []corev1.KeyToPath, optional *bool, mode *int32) error {
	var data map[string][]byte
	secret, err := w.k.secrets.Secrets(w.namespace).Get(name)
	if err == nil {
		data = secret.Data
	}
	return volume.AddKeys(files, data, items, optional, mode, err)
}

func (w *worker) configMapFiles(files map[string]volume.File, name string, items []corev1.KeyToPath, optional *bool, mode *int32) error {
	var data map[string][]byte
	configMap, err := w.k.configMaps.ConfigMaps(w.namespace).Get(name)
	if err == nil {
		data = dataOf(configMap)
	}
	return volume.AddKeys(files, data, items, optional, mode, err)
}

func (w *worker) fieldFiles(files map[string]volume.File, items []corev1.DownwardAPIVolumeFile, mode *int32) error {
	for _, item := range items {
		if item.FieldRef == nil {
			return refusal("the file %q of it names no field", item.Path)
		}
		value, err := w.field(item.FieldRef.FieldPath)
		if err != nil {
			return err
		}
		files[path.Clean(item.Path)] = volume.File{Data: value, Mode: volume.ModeOf(item.Mode, mode)}
	}
	return nil
}
