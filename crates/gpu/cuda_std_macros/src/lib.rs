//! `#[kernel]`: an ordinary function here, an entry of the PTX module on the GPU.

use proc_macro::TokenStream;
use quote::quote;
use syn::{FnArg, ItemFn, ReturnType, parse_macro_input, spanned::Spanned};

/// Makes a function an entry that the host can launch.
///
/// On the GPU the function becomes `extern "ptx-kernel"` under its own name; elsewhere it stays the function it is, so
/// that an emulator can call it. It must be a plain `unsafe fn`, without generic parameters (a generic function has no
/// symbol) and without a return value, else the compiler says which rule it breaks; `pub`, if others are to call it. Its
/// parameters are numbers, pointers and `Global<T>`, which nothing here checks.
///
/// ```
/// # use lanky_cuda_std_macros::kernel;
/// #[kernel]
/// pub unsafe fn scale(factor: f64, x: *mut f64) {
///     // SAFETY: there is an element at x.
///     unsafe { *x *= factor };
/// }
///
/// let mut x = 2.0;
/// // SAFETY: off the GPU it is an ordinary function, and x is there.
/// unsafe { scale(3.0, &raw mut x) };
/// assert_eq!(x, 6.0);
/// ```
/// A function that returns something is none:
/// ```compile_fail
/// # use lanky_cuda_std_macros::kernel;
/// #[kernel]
/// pub unsafe fn three() -> u32 { 3 }
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
