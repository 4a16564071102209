//! `#[kernel]`: an ordinary function here, an entry of the PTX module on the GPU.

use proc_macro::TokenStream;
use quote::quote;
use syn::{FnArg, ItemFn, ReturnType, parse_macro_input, spanned::Spanned};

/// Makes a function an entry that the host can launch.
///
/// On the GPU the function becomes `extern "ptx-kernel"` under its own name; elsewhere it stays the function it is, so
/// that an emulator can call it. It must be `pub unsafe`, without generic parameters (a generic function has no symbol)
/// and without a return value.
///
/// ```ignore
/// #[kernel]
/// pub unsafe fn scale(n: u64, factor: f64, x: Global<f64>) { .. }
/// ```
#[proc_macro_attribute]
pub fn kernel(arguments: TokenStream, function: TokenStream) -> TokenStream {
    let function = parse_macro_input!(function as ItemFn);
    let arguments = proc_macro2::TokenStream::from(arguments);
    if let Err(error) = check(&arguments, &function) {
        return error.into_compile_error().into();
    }
    let ItemFn { attrs, vis, sig, block } = function;
    let (name, inputs) = (&sig.ident, &sig.inputs);
    quote! {
        #(#attrs)*
        #[cfg(target_arch = "nvptx64")]
        #[unsafe(no_mangle)]
        #vis unsafe extern "ptx-kernel" fn #name(#inputs) #block

        #(#attrs)*
        #[cfg(not(target_arch = "nvptx64"))]
        #vis unsafe fn #name(#inputs) #block
    }
    .into()
}

fn check(arguments: &proc_macro2::TokenStream, function: &ItemFn) -> syn::Result<()> {
    let sig = &function.sig;
    let refuse = |span, text: &str| Err(syn::Error::new(span, text));
    if !arguments.is_empty() {
        return refuse(arguments.span(), "#[kernel] takes no arguments");
    }
    if sig.unsafety.is_none() {
        return refuse(sig.fn_token.span(), "a kernel is `unsafe fn`: its caller vouches for launch and operands");
    }
    if !sig.generics.params.is_empty() {
        return refuse(sig.generics.span(), "a kernel has no generic parameters: a generic function has no symbol");
    }
    if sig.asyncness.is_some() || sig.constness.is_some() || sig.abi.is_some() {
        return refuse(sig.span(), "a kernel is a plain `pub unsafe fn`");
    }
    if !matches!(sig.output, ReturnType::Default) {
        return refuse(sig.output.span(), "a kernel returns nothing: it writes its results to memory");
    }
    match sig.inputs.iter().find(|input| matches!(input, FnArg::Receiver(_))) {
        Some(receiver) => refuse(receiver.span(), "a kernel is no method"),
        None => Ok(()),
    }
}
