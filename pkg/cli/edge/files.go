// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

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

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/edge/hzn"
)

// These bounds apply to files because other users may have written them, and a folder can be of any size.
const (
	maxEdgeFiles   = 500
	maxEdgeFile    = 16 << 20
	maxEdgeBytes   = 64 << 20
	maxEdgeObjects = 5000
	standardInput  = "-"
)

// edgeFiles are the flags that select the files to read, and their format.
type edgeFiles struct {
	*kit.Options
	files         []string
	organizations map[string]string
	variables     map[string]string
	objectName    string
	servicePolicy string
	// archives is the folder in which archives may be that are not in the folder of their definition.
	archives string
	// nodesByFile reports whether a node without a name gets the name of its file, as all other objects do. It is for commands that create no node.
	nodesByFile bool
	bytes       int
}

// edgeObject is an object of a file.
type edgeObject struct {
	runtime.Object
	// source is the file.
	source string
	// hzn is the kind of the file if it is one of Open Horizon.
	hzn hzn.Kind
}

func (f *edgeFiles) addTo(cmd *cobra.Command, formats string) {
	fs := cmd.Flags()
	fs.StringSliceVarP(&f.files, "filename", "f", nil, "File, or folder of files that end in .json, .yaml or .yml: "+formats+". - reads standard input.")
	fs.StringToStringVar(&f.organizations, "organization", nil, "Namespace that stands for an organization of files of Open Horizon, as ORG=NAMESPACE. "+
		"Defaults to the namespace with the name of the organization.")
	fs.StringToStringVar(&f.variables, "variable", nil, "Value of a variable of files of Open Horizon, as NAME=VALUE. Environment variables are not read.")
	fs.StringVar(&f.objectName, "name", "", "Name of the object of the one file of Open Horizon, if it has none. Defaults to the name of the file, except for nodes that are imported: "+
		"a node has the name of its ManagedCluster.")
	fs.StringVar(&f.archives, "archives", "", "Folder in or below which archives may be that service definitions name by a path outside of their own folder. "+
		"Without it, such archives are not read.")
	fs.StringVar(&f.servicePolicy, "service-policy", "", "File of Open Horizon with the policy of the one service of the files.")
}

// read reads all files. Objects of Open Horizon's files are in the namespace, unless they name an organization.
func (f *edgeFiles) read(namespace string) ([]edgeObject, error) {
	paths, err := f.paths()
	if err != nil {
		return nil, err
	}
	if f.objectName != "" && len(paths) != 1 {
		return nil, fmt.Errorf("--name is for one file, but --filename names %d", len(paths))
	}
	var all []edgeObject
	for _, path := range paths {
		data, err := f.load(path)
		if err != nil {
			return nil, err
		}
		objects, err := f.parse(path, data, namespace)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", shownPath(path), err)
		}
		all = append(all, objects...)
		if len(all) > maxEdgeObjects {
			return nil, fmt.Errorf("--filename: the files have more than %d objects: pass fewer of them at a time", maxEdgeObjects)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("--filename: no objects found in %s", strings.Join(f.files, ", "))
	}
	return all, f.addServicePolicy(all)
}

// paths returns the paths of the files. Files of a folder are sorted by name.
func (f *edgeFiles) paths() (paths []string, err error) {
	for _, given := range f.files {
		info, err := os.Stat(given)
		switch {
		case given == standardInput:
			paths = append(paths, given)
			continue
		case err != nil:
			return nil, fmt.Errorf("--filename: %w", err)
		case !info.IsDir():
			paths = append(paths, given)
			continue
		}
		entries, err := os.ReadDir(given)
		if err != nil {
			return nil, fmt.Errorf("--filename: %w", err)
		}
		for _, entry := range entries {
			if name := entry.Name(); !entry.IsDir() && !strings.HasPrefix(name, ".") && slices.Contains([]string{".json", ".yaml", ".yml"}, filepath.Ext(name)) {
				paths = append(paths, filepath.Join(given, name))
			}
		}
	}
	if len(paths) > maxEdgeFiles {
		return nil, fmt.Errorf("--filename: there are %d files, but the limit is %d: pass fewer of them at a time", len(paths), maxEdgeFiles)
	}
	return paths, nil
}

// load reads a file of limited size.
func (f *edgeFiles) load(path string) ([]byte, error) {
	in := f.In
	if path != standardInput {
		file, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("--filename: %w", err)
		}
		defer file.Close()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, maxEdgeFile+1))
	if err != nil {
		return nil, fmt.Errorf("--filename: %s: %w", shownPath(path), err)
	}
	f.bytes += len(data)
	if len(data) > maxEdgeFile || f.bytes > maxEdgeBytes {
		return nil, fmt.Errorf("--filename: %s: the limit is %d bytes for a file, and %d for all files: pass less at a time", shownPath(path), maxEdgeFile, maxEdgeBytes)
	}
	return data, nil
}

func shownPath(path string) string {
	if path == standardInput {
		return "standard input"
	}
	return path
}

// parse parses a file: manifests of ours, or a file of Open Horizon, which has neither apiVersion nor kind.
func (f *edgeFiles) parse(path string, data []byte, namespace string) ([]edgeObject, error) {
	if isManifest(data) {
		objects, err := readManifests(data)
		if err != nil {
			return nil, err
		}
		all := make([]edgeObject, len(objects))
		for i, o := range objects {
			all[i] = edgeObject{Object: o, source: shownPath(path)}
		}
		return all, nil
	}
	kind, err := hzn.Detect(data)
	if errors.Is(err, hzn.ErrUserInput) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("it is neither a manifest (apiVersion and kind are missing) nor a file of Open Horizon: %w", err)
	}
	options := f.options(path, namespace)
	if (kind != hzn.Node || f.nodesByFile) && path != standardInput {
		options.Name = cmp.Or(options.Name, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
	}
	result, err := hzn.Read(kind, data, options)
	if err != nil {
		return nil, fmt.Errorf("%w (--name, --organization and --variable set what a file does not)", err)
	}
	f.printNotes(path, result.Notes)
	all := make([]edgeObject, len(result.Objects))
	for i, o := range result.Objects {
		all[i] = edgeObject{Object: o, source: shownPath(path), hzn: kind}
	}
	return all, nil
}

// printNotes prints what was not converted.
func (f *edgeFiles) printNotes(path string, notes []hzn.Note) {
	for _, note := range notes {
		f.Note("%s: %s", shownPath(path), note)
	}
}

func (f *edgeFiles) options(path, namespace string) hzn.Options {
	return hzn.Options{
		Name: f.objectName, Namespace: namespace, Namespaces: f.organizations,
		Variable: func(name string) (string, bool) {
			value, known := f.variables[name]
			return value, known
		},
		Archive: func(name string) ([]byte, error) { return readArchive(path, name, f.archives) },
	}
}

// addServicePolicy adds the policy of the flag for all versions and architectures of the service in the files.
func (f *edgeFiles) addServicePolicy(all []edgeObject) error {
	if f.servicePolicy == "" {
		return nil
	}
	data, err := f.load(f.servicePolicy)
	if err != nil {
		return fmt.Errorf("--service-policy: %w", err)
	}
	policy, notes, err := hzn.ReadServicePolicy(bytes.TrimSpace(data), f.options(f.servicePolicy, ""))
	if err != nil {
		return fmt.Errorf("--service-policy: %s: %w", shownPath(f.servicePolicy), err)
	}
	f.printNotes(f.servicePolicy, notes)
	url := ""
	for _, o := range all {
		s, is := o.Object.(*api.EdgeService)
		if !is {
			continue
		}
		if url != "" && url != s.Spec.URL {
			return fmt.Errorf("--service-policy is for one service, but the files have %s and %s: pass one of them at a time", url, s.Spec.URL)
		}
		url, s.Spec.Policy = s.Spec.URL, policy
	}
	if url == "" {
		return errors.New("--service-policy: the files have no service")
	}
	return nil
}
